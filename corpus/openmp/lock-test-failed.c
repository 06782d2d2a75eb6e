// expect: race
// The counter is changed although the lock was not had.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    {
        int had = omp_test_lock(&lock);
        count++;
#pragma omp barrier
        if (had)
            omp_unset_lock(&lock);
    }
    return 0;
}
