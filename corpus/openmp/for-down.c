// expect: race-free
// A loop that counts down.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
#pragma omp parallel for schedule(static)
    for (int i = 99; i >= 0; i -= 3)
        a[i] = i;
    return a[99] != 99;
}
