// expect: race
// Tasks with dependences that are not siblings (173).
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
        }
#pragma omp task depend(inout : a) shared(a)
        {
#pragma omp task depend(inout : a) shared(a)
            a++;
        }
    }
    return a < 0;
}
