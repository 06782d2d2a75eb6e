// expect: race
// One access is outside of the critical section.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp critical
        count++;
        out[omp_get_thread_num()] = count;
    }
    return 0;
}
