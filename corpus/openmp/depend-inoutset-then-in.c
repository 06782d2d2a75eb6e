// expect: race-free
// A reader comes after all of an inoutset.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a, b, c, x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(inoutset : x)
        a = 1;
#pragma omp task depend(inoutset : x)
        b = 1;
#pragma omp task depend(in : x)
        c = a + b;
    }
    return c != 2;
}
