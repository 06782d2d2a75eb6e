// expect: race
// Who comes to the end of a region early has still done what it has done before, at the same time as others.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int last;

int main(void) {
#pragma omp parallel
    {
        last = omp_get_thread_num();
#pragma omp cancel parallel
    }
    return last < 0;
}
