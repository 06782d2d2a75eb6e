// expect: race-free
// Each thread of the inner teams has an element of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[4][4];

int main(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(3)
        a[outer][omp_get_thread_num()]++;
    }
    return 0;
}
