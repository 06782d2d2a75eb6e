// expect: race
// A single allocates for all, and another one without order writes there.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int *shared;

int main(void) {
#pragma omp parallel
    {
#pragma omp single
        shared = calloc(4, sizeof *shared);
#pragma omp single nowait
        shared[0] = 1;
#pragma omp single nowait
        shared[0] = 2;
    }
    return 0;
}
