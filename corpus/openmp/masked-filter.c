// expect: race
// Two masked regions are of different threads.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp masked filter(0)
        x = 1;
#pragma omp masked filter(1)
        x = 2;
    }
    return 0;
}
