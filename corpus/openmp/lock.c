// expect: race-free
// A lock of the API protects the counter.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    {
        omp_set_lock(&lock);
        count++;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    return count < 2;
}
