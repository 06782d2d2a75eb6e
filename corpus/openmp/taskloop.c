// expect: race-free
// A loop of tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[200];

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop
        for (int i = 0; i < 200; i++)
            a[i] = i;
        a[0] = a[199];
    }
    return a[0] != 199;
}
