// expect: race
// Tasks of a group that is cancelled have done what they did before at the same time.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int last;

int main(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
    for (int i = 0; i < 10; i++) {
#pragma omp task
        {
            last = i;
#pragma omp cancel taskgroup if (i == 5)
        }
    }
    return last < 0;
}
