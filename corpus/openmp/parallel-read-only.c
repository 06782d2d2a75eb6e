// expect: race-free
// All threads read what was written before the region.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
    x = 7;
#pragma omp parallel
    out[omp_get_thread_num()] = x;
    return 0;
}
