// expect: race
// Only two far iterations of a dynamic loop touch the same element.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000];

int main(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 512; i++)
        a[i == 256 ? 0 : i] = i;
    return 0;
}
