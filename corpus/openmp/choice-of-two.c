// expect: race-free
// Each thread reads one of two variables. An optimiser would like to load both, and choose.
#include <stdio.h>
#include <omp.h>

int counts[2];

int main(void) {
#pragma omp parallel num_threads(2)
    {
        int thread = omp_get_thread_num(), old;
        if (thread == 0)
            old = counts[0];
        else
            old = counts[1];
        counts[thread] = old + 1;
    }
    printf("%d %d\n", counts[0], counts[1]);
    return 0;
}
