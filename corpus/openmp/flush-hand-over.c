// expect: race-free
// Data behind a flag that is read and written atomically without order: flushes on both sides make it a hand-over.
#include <stdio.h>
#include <omp.h>

int data, flag;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        data = 5;
#pragma omp flush
#pragma omp atomic write
        flag = 1;
    } else {
        int seen = 0;
        while (!seen) {
#pragma omp atomic read
            seen = flag;
        }
#pragma omp flush
        data++;
    }
    printf("%d\n", data);
    return 0;
}
