// expect: race-free
// Atomic reads and writes.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
#pragma omp parallel
    {
        int own;
#pragma omp atomic write
        x = 1;
#pragma omp atomic read
        own = x;
        out[omp_get_thread_num()] = own;
    }
    return 0;
}
