// expect: race-free
// The parent reads it behind a taskwait.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int out;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
        int x = 0;
#pragma omp task shared(x)
        x = 1;
#pragma omp taskwait
        out = x;
    }
    return out != 1;
}
