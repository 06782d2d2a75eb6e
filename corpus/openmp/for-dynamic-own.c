// expect: race-free
// Each iteration of a dynamic loop has an element of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[500];

int main(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 500; i++)
        a[i] += i;
    return a[499] != 499;
}
