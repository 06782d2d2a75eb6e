// expect: race
// One side of the diamond is missing.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a, b, c, d;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : a)
        a = 1;
#pragma omp task depend(in : a) depend(out : b)
        b = a;
#pragma omp task depend(in : a) depend(out : c)
        c = a;
#pragma omp task depend(in : b)
        d = b + c;
    }
    return 0;
}
