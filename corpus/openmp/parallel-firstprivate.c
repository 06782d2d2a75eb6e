// expect: race-free
// A firstprivate variable is a copy for each thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int x = 5;
#pragma omp parallel firstprivate(x)
    x += omp_get_thread_num();
    return x != 5;
}
