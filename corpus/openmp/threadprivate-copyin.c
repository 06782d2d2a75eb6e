// expect: race-free
// copyin gives each thread the value of thread 0.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int own = 1;
#pragma omp threadprivate(own)
int out[1024];

int main(void) {
    own = 7;
#pragma omp parallel copyin(own)
    out[omp_get_thread_num()] = own;
    return out[0] != 7 || out[1] != 7;
}
