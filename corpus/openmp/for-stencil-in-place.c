// expect: race
// A stencil in place.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

double a[100];

int main(void) {
    for (int round = 0; round < 2; round++)
#pragma omp parallel for
        for (int i = 1; i < 99; i++)
            a[i] = (a[i - 1] + a[i + 1]) / 2;
    return 0;
}
