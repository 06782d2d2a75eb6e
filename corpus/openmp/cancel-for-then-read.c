// expect: race-free
// Behind the barrier of a loop that was cancelled everybody reads what was done in it, and the next loop is whole.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int first[200], second[200], sums[64];

int main(void) {
#pragma omp parallel
    {
        int sum = 0;
#pragma omp for
        for (int i = 0; i < 200; i++) {
            first[i] = 1;
#pragma omp cancel for if (i == 7)
        }
        for (int i = 0; i < 200; i++) {
            sum += first[i];
        }
        sums[omp_get_thread_num()] = sum;
#pragma omp for
        for (int i = 0; i < 200; i++) {
            second[i] = 1;
        }
    }
    for (int i = 0; i < 200; i++) {
        if (!second[i]) {
            return 1;
        }
    }
    return sums[0] < 1;
}
