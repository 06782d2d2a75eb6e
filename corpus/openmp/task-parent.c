// expect: race
// The parent reads what its task writes.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        x = 1;
        y = x;
    }
    return 0;
}
