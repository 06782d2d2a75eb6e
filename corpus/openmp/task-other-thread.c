// expect: race
// A task is parallel to what other threads do.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        {
#pragma omp task
            x = 1;
        }
#pragma omp master
        x = 2;
    }
    return 0;
}
