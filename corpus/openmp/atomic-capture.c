// expect: race-free
// Each thread gets a number of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int next, a[1024];

int main(void) {
#pragma omp parallel
    {
        int own;
#pragma omp atomic capture
        own = next++;
        a[own] = 1;
    }
    return 0;
}
