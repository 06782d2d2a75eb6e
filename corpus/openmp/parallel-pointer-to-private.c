// expect: race
// The address of a private variable is given to others, who read it without order.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int *shared;
int out[1024];

int main(void) {
#pragma omp parallel
    {
        int own = 1;
#pragma omp master
        shared = &own;
#pragma omp barrier
        own = 2;
        out[omp_get_thread_num()] = *shared;
#pragma omp barrier
    }
    return 0;
}
