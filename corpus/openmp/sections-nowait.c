// expect: race
// Without the barrier others read what sections still write.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a, b, sum[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp sections nowait
        {
#pragma omp section
            a = 1;
#pragma omp section
            b = 1;
        }
        sum[omp_get_thread_num()] = a + b;
    }
    return 0;
}
