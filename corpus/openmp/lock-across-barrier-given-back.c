// expect: race
// It is not when it was given back there.
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
            omp_unset_lock(&lock);
            x++;
        }
        if (omp_get_thread_num() > 0) {
            omp_set_lock(&lock);
            x++;
            omp_unset_lock(&lock);
        }
    }
    return x != omp_get_max_threads();
}
