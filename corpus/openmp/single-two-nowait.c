// expect: race
// Two singles without barriers may be run by two threads.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        x = 1;
#pragma omp single nowait
        x = 2;
    }
    return 0;
}
