// expect: race-free
// A fixed chunk keeps neighbours together.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[101];

int main(void) {
#pragma omp parallel for schedule(static, 2)
    for (int i = 0; i < 100; i++)
        a[i / 2] += i;
    return a[0] != 1;
}
