// expect: race-free
// A taskwait with a dependence waits for what it names.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp taskwait depend(in : x)
        y = x;
    }
    return y != 1;
}
