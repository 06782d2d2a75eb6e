// expect: race-free
// All read what a single has written, behind its barrier.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp single
        x = 1;
        out[omp_get_thread_num()] = x;
    }
    return 0;
}
