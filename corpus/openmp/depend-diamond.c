// expect: race-free
// A diamond of dependences.
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
#pragma omp task depend(in : b, c)
        d = b + c;
    }
    return d != 2;
}
