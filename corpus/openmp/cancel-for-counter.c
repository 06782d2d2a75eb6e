// expect: race
// What is done before the loop is cancelled is parallel: a counter without protection.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int looked;

int main(void) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 1000; i++) {
            looked++;
            if (i == 40) {
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
    }
    return looked == 1000;
}
