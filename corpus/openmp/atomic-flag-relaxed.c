// expect: race
// A flag that orders nothing.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int flag, data, out;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        data = 42;
#pragma omp atomic write relaxed
        flag = 1;
    } else {
        int seen = 0;
        while (!seen) {
#pragma omp atomic read relaxed
            seen = flag;
        }
        out = data;
    }
    return 0;
}
