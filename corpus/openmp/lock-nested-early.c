// expect: race
// A nested lock is given back, and the counter changed after that.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
    omp_nest_lock_t lock;
    omp_init_nest_lock(&lock);
#pragma omp parallel
    {
        omp_set_nest_lock(&lock);
        omp_set_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
        count++;
    }
    return 0;
}
