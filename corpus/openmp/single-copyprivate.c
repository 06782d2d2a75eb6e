// expect: race-free
// copyprivate gives all threads what one has read.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int out[1024];

int main(void) {
#pragma omp parallel
    {
        int value;
#pragma omp single copyprivate(value)
        value = 42;
        out[omp_get_thread_num()] = value;
    }
    return out[0] != 42 || out[1] != 42;
}
