// expect: deadlock
// Two locks in different orders, with a barrier that makes it certain.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

omp_lock_t one, two;

int main(void) {
    omp_init_lock(&one);
    omp_init_lock(&two);
#pragma omp parallel num_threads(2)
    {
        int me = omp_get_thread_num();
        omp_set_lock(me ? &one : &two);
#pragma omp barrier
        omp_set_lock(me ? &two : &one);
    }
    return 0;
}
