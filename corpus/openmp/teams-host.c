// expect: race-free
// A league on the host.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
#pragma omp teams distribute parallel for
    for (int i = 0; i < 100; i++)
        a[i] = i;
    return a[99] != 99;
}
