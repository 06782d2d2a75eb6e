// expect: race-free
// A task comes after another by way of a third.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, a, b;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : a)
        x = 1;
#pragma omp task depend(in : a) depend(out : b)
        a = 2;
#pragma omp task depend(in : b)
        x = 2;
    }
    return x != 2;
}
