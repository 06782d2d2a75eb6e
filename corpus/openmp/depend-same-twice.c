// expect: race-free
// A variable that a task names twice: it does not wait for itself.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(mutexinoutset : x) depend(in : x)
        x++;
#pragma omp task depend(mutexinoutset : x)
        x++;
#pragma omp task depend(in : x) depend(out : x)
        x++;
    }
    return x != 3;
}
