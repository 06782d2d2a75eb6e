// expect: deadlock
// Only thread 0 comes to a barrier, and the others wait at another one for ever.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp barrier
#pragma omp barrier
        } else {
#pragma omp barrier
        }
#pragma omp critical
        {
            omp_lock_t lock;
            omp_init_lock(&lock);
            omp_set_lock(&lock);
            omp_set_lock(&lock);
        }
    }
    return 0;
}
