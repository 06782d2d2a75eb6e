// expect: race-free
// A cancellation point of a region that nobody has cancelled is nothing; behind a cancel it is the end.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int done[64], ended[64];

int main(void) {
#pragma omp parallel
    {
        int me = omp_get_thread_num();
#pragma omp cancellation point parallel
        done[me] = 1;
#pragma omp barrier
#pragma omp cancel parallel if (me == 0)
#pragma omp barrier
        ended[me] = 1;
    }
    return !done[0] || !done[1] || ended[0] || ended[1];
}
