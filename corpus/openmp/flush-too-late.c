// expect: race
// The flush comes behind the flag: what was written before it is not handed over.
#include <stdio.h>
#include <omp.h>

int data, flag;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        data = 5;
#pragma omp atomic write
        flag = 1;
#pragma omp flush
    } else {
        int seen = 0;
        while (!seen) {
#pragma omp atomic read
            seen = flag;
        }
        data++;
    }
    printf("%d\n", data);
    return 0;
}
