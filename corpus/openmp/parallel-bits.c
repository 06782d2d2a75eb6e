// expect: race
// Two bit fields of one byte: threads write the same byte.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

struct { unsigned a : 4, b : 4; } bits;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
        bits.a = 1;
    else
        bits.b = 1;
    return 0;
}
