// expect: race
// A fixed chunk that does not keep them together.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[101];

int main(void) {
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 100; i++)
        a[i / 2] += i;
    return 0;
}
