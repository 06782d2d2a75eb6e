// expect: race-free
// A release flush and an acquire flush, around atomic accesses without order.
#include <stdio.h>
#include <omp.h>

int data, flag;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        data = 5;
#pragma omp flush release
#pragma omp atomic write
        flag = 1;
    } else {
        int seen = 0;
        while (!seen) {
#pragma omp atomic read
            seen = flag;
        }
#pragma omp flush acquire
        data++;
    }
    printf("%d\n", data);
    return 0;
}
