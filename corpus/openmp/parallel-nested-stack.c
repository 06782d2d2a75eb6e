// expect: race-free
// Threads of inner teams that come one after the other use the same stacks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int work(int n) {
    volatile int a[16];
    for (int i = 0; i < 16; i++)
        a[i] = n;
    return a[3];
}

int main(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(4)
    for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(3)
        {
            int own = work(round), *p = &own;
#pragma omp barrier
            *p += work(own);
        }
    }
    return 0;
}
