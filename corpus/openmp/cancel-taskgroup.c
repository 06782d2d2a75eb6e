// expect: race-free
// Tasks look for something; who has found it cancels the group, and those that have not begun never do.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int begun[100], found;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        for (int i = 0; i < 100; i++) {
#pragma omp task
            {
                begun[i] = 1;
                if (i == 10) {
#pragma omp atomic write
                    found = i;
#pragma omp cancel taskgroup
                    begun[i] = 2;
                }
            }
        }
        // Behind the group there are others.
#pragma omp task
        begun[99] = 3;
    }
    return found != 10 || begun[10] != 1 || begun[99] != 3;
}
