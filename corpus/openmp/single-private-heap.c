// expect: race-free
// A single uses a buffer that its thread has allocated for itself.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
        int *own = malloc(64);
        own[0] = 1;
#pragma omp single
        x = own[0]++;
        own[0] = 2;
        free(own);
    }
    return x != 1;
}
