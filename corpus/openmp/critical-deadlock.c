// expect: deadlock
// Two critical sections are entered in different orders.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int step;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
#pragma omp critical(one)
        {
            while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < 1)
                ;
            __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
#pragma omp critical(two)
            step = 3;
        }
    } else {
#pragma omp critical(two)
        {
            __atomic_store_n(&step, 1, __ATOMIC_RELEASE);
            while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < 2)
                ;
#pragma omp critical(one)
            step = 3;
        }
    }
    return 0;
}
