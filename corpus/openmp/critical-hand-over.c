// expect: race-free
// What was written before a flag was set in a critical section may be read by who has seen the flag.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int flag, data, out;

int main(void) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        int seen = 0;
        while (!seen) {
#pragma omp critical
            seen = flag;
        }
        out = data;
    } else {
        data = 42;
#pragma omp critical
        flag = 1;
    }
    return out != 42;
}
