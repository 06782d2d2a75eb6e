// expect: race
// Two critical sections that have nothing to do with each other order nothing.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a, b, data;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        data = 1;
#pragma omp critical
        a++;
    } else {
#pragma omp critical
        b++;
        data = 2;
    }
    return 0;
}
