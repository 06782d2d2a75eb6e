// expect: race-free
// A loop with simd.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

float a[1000], b[1000];

int main(void) {
#pragma omp parallel for simd
    for (int i = 0; i < 1000; i++)
        a[i] = b[i] + 1;
    return 0;
}
