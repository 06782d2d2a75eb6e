// expect: race-free
// A lock that is held across a barrier is held behind it.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;
omp_lock_t lock;

int main(void) {
    omp_init_lock(&lock);
#pragma omp parallel
    {
#pragma omp master
        omp_set_lock(&lock);
#pragma omp barrier
#pragma omp master
        {
            x++;
            omp_unset_lock(&lock);
        }
        if (omp_get_thread_num() > 0) {
            omp_set_lock(&lock);
            x++;
            omp_unset_lock(&lock);
        }
    }
    return x != omp_get_max_threads();
}
