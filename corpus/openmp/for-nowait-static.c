// expect: race-free
// Two static loops over the same iterations: each thread has the same ones in both.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000], b[1000];

int main(void) {
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 1000; i++)
            a[i] = i;
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 1000; i++)
            b[i] = a[i];
    }
    return b[999] != 999;
}
