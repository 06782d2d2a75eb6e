// expect: race-free
// A grain keeps iterations together.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[50];

int main(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(100)
    for (int i = 0; i < 100; i++)
        a[i / 2] += i;
    return 0;
}
