// expect: race-free
// A flag is set with release and read with acquire.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int flag, data, out;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        data = 42;
#pragma omp atomic write release
        flag = 1;
    } else {
        int seen = 0;
        while (!seen) {
#pragma omp atomic read acquire
            seen = flag;
        }
        out = data;
    }
    return out != 42;
}
