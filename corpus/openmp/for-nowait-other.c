// expect: race
// A second loop reads other iterations of the first, which has no barrier.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000], b[1000];

int main(void) {
#pragma omp parallel
    {
#pragma omp for nowait
        for (int i = 0; i < 1000; i++)
            a[i] = i;
#pragma omp for
        for (int i = 0; i < 1000; i++)
            b[i] = a[999 - i];
    }
    return 0;
}
