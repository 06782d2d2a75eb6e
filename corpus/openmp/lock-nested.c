// expect: race-free
// A nested lock may be taken twice.
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
        count++;
        omp_unset_nest_lock(&lock);
        count++;
        omp_unset_nest_lock(&lock);
    }
    omp_destroy_nest_lock(&lock);
    return 0;
}
