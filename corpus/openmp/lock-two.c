// expect: race
// Two locks do not exclude each other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
    omp_lock_t lock[2];
    omp_init_lock(&lock[0]);
    omp_init_lock(&lock[1]);
#pragma omp parallel num_threads(2)
    {
        omp_lock_t *own = &lock[omp_get_thread_num() % 2];
        omp_set_lock(own);
        count++;
        omp_unset_lock(own);
    }
    return 0;
}
