// expect: race
// One thread frees what others read.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int out[1024];

int main(void) {
    int *p = calloc(16, sizeof *p);
#pragma omp parallel
    {
        out[omp_get_thread_num()] = p[0];
#pragma omp master
        free(p);
    }
    return 0;
}
