// expect: race
// Iterations of a loop of tasks depend on each other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[200];

int main(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop
    for (int i = 1; i < 200; i++)
        a[i] = a[i - 1];
    return 0;
}
