// expect: race
// Chunks of a guided loop may be as small as one iteration.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[101];

int main(void) {
#pragma omp parallel for schedule(guided)
    for (int i = 0; i < 100; i++)
        a[i / 2] = i;
    return 0;
}
