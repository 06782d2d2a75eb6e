// expect: race-free
// The barrier of the first loop orders the second.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000], b[1000];

int main(void) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 7)
        for (int i = 0; i < 1000; i++)
            a[i] = i;
#pragma omp for schedule(guided)
        for (int i = 0; i < 1000; i++)
            b[i] = a[999 - i];
    }
    return b[0] != 999;
}
