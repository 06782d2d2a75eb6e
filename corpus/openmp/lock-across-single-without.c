// expect: race
// The others use x without the lock.
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
        x++;
    }
    return x != omp_get_max_threads() + 1;
}
