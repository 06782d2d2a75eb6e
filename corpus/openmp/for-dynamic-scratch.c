// expect: race-free
// Each thread has a buffer that it uses in all its chunks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int out[200];

int main(void) {
#pragma omp parallel
    {
        int *scratch = malloc(16 * sizeof *scratch);
        int local[16];
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 200; i++) {
            for (int j = 0; j < 16; j++) {
                scratch[j] = i + j;
                local[j] = scratch[j];
            }
            out[i] = scratch[3] + local[15];
        }
        free(scratch);
    }
    return 0;
}
