// expect: race-free
// Each iteration has an element of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 1000; i++)
        a[i] = i;
    return a[999] != 999;
}
