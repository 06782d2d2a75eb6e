// expect: race
// A single without its barrier: others read before it is over.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        x = 1;
        out[omp_get_thread_num()] = x;
    }
    return 0;
}
