// expect: deadlock
// A lock is taken twice by the same thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
#pragma omp master
    {
        omp_set_lock(&lock);
        omp_set_lock(&lock);
    }
    return 0;
}
