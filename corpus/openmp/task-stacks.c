// expect: race-free
// Sibling tasks use the same stack one after the other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int work(int n) {
    volatile int a[32];
    for (int i = 0; i < 32; i++)
        a[i] = n + i;
    return a[5];
}

int out[60];

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 60; i++) {
#pragma omp task
        out[i] = work(i);
        work(i);
    }
    return 0;
}
