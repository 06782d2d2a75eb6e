// expect: race-free
// Two masked regions are of the same thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp masked filter(1)
        x = 1;
#pragma omp masked filter(1)
        x++;
    }
    return x != 2;
}
