// expect: race
// Threads write the same word of a heap block.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int *p = calloc(16, sizeof *p);
#pragma omp parallel
    p[3] = omp_get_thread_num();
    free(p);
    return 0;
}
