// expect: race-free
// master, and a barrier behind it.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
#pragma omp barrier
        out[omp_get_thread_num()] = x;
    }
    return 0;
}
