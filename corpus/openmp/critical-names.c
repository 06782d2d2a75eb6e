// expect: race
// Critical sections with different names do not exclude each other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
#pragma omp critical(one)
        count++;
    } else {
#pragma omp critical(two)
        count++;
    }
    return 0;
}
