// expect: race-free
// Whoever finds it cancels the loop; the one result is written in a critical section.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int values[1000], where = -1, looked[1000];

int main(void) {
    for (int i = 0; i < 1000; i++) {
        values[i] = i;
    }
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 1000; i++) {
            looked[i] = 1;
            if (values[i] == 40) {
#pragma omp critical
                where = i;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
    }
    int count = 0;
    for (int i = 0; i < 1000; i++) {
        count += looked[i];
    }
    // All before it were begun, and not all behind it.
    return where != 40 || !looked[40] || count == 1000 || !omp_get_cancellation();
}
