// expect: race-free
// The same, and parents wait for their children (174).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int a = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(inout : a) shared(a)
        {
#pragma omp task depend(inout : a) shared(a)
            a++;
#pragma omp taskwait
        }
#pragma omp task depend(inout : a) shared(a)
        {
#pragma omp task depend(inout : a) shared(a)
            a++;
#pragma omp taskwait
        }
    }
    return a != 2;
}
