// expect: race
// The schedule comes from the environment.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[101];

int main(void) {
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < 100; i++)
        a[i / 2] = i;
    return 0;
}
