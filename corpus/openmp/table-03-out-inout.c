// expect: race-free
// Two writers in this order (078).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int i = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : i)
        i = 1;
#pragma omp task depend(inout : i)
        i = 2 * i;
    }
    return i != 2;
}
