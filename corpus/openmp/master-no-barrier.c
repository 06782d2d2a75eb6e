// expect: race
// master has no barrier, which is often forgotten.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
        out[omp_get_thread_num()] = x;
    }
    return 0;
}
