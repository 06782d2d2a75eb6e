// expect: race
// Two dynamic loops over the same iterations: another thread may have the iteration in the second one.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000], b[1000];

int main(void) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 1000; i++)
            a[i] = i;
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 1000; i++)
            b[i] = a[i];
    }
    return 0;
}
