// expect: race-free
// taskwait between two tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        x = 1;
#pragma omp taskwait
#pragma omp task
        x = 2;
    }
    return x != 2;
}
