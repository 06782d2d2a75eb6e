// expect: race
// A flag that is read and written plainly, with flushes, is a race.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int flag;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        flag = 1;
#pragma omp flush
    } else {
        int seen = 0;
        while (!seen) {
#pragma omp flush
            seen = flag;
        }
    }
    return 0;
}
