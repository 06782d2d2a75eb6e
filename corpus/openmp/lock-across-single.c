// expect: race-free
// A single is run by a thread that holds the lock.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;
omp_lock_t lock;

int main(void) {
    omp_init_lock(&lock);
#pragma omp parallel
    {
        omp_set_lock(&lock);
#pragma omp single nowait
        x++;
        omp_unset_lock(&lock);
        omp_set_lock(&lock);
        x++;
        omp_unset_lock(&lock);
    }
    return x != omp_get_max_threads() + 1;
}
