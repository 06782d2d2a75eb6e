// expect: race-free
// The end of a region waits for its tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single nowait
    {
#pragma omp task
        x = 1;
    }
    return x != 1;
}
