// expect: race-free
// A thread polls inside of a critical section until another one has set a flag there.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int flag;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        int seen = 0;
        while (!seen) {
#pragma omp critical
            seen = flag;
        }
    } else {
#pragma omp critical
        flag = 1;
    }
    return 0;
}
