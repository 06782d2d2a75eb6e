// expect: race-free
// A target region on the host.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
#pragma omp target map(tofrom : a)
    {
#pragma omp parallel for
        for (int i = 0; i < 100; i++)
            a[i] = i;
    }
    return a[99] != 99;
}
