// expect: race-free
// Each thread allocates and frees its own block.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
#pragma omp parallel
    for (int i = 0; i < 20; i++) {
        int *p = malloc(64);
        p[0] = i;
        p[1] = p[0];
        free(p);
    }
    return 0;
}
