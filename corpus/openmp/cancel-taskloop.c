// expect: race-free
// A taskloop is a group: its tasks can be cancelled.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int begun[100];

int main(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1)
    for (int i = 0; i < 100; i++) {
        begun[i] = 1;
        if (i == 3) {
#pragma omp cancel taskgroup
        }
    }
    return !begun[3];
}
