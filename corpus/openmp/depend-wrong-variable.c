// expect: race
// The dependence is on another variable.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y, other;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : other)
        x = 1;
#pragma omp task depend(in : y)
        y = x;
    }
    return 0;
}
