// expect: race-free
// A region is cancelled: threads that wait at a barrier go to its end, too.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int before[64], behind[64], done;

int main(void) {
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        before[me] = 1;
#pragma omp cancel parallel if (me == 1)
#pragma omp barrier
        behind[me] = 1;
#pragma omp single
        done = 1;
    }
    for (int i = 0; i < 64; i++) {
        if (behind[i]) {
            return 1;
        }
    }
    return done || !before[1];
}
