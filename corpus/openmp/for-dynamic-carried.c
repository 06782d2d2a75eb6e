// expect: race
// Chunks of a dynamic loop may be on any threads, in any order.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[64];

int main(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 1; i < 64; i++)
        a[i] = a[i - 1];
    return 0;
}
