// expect: race
// A local variable of main is shared by the threads.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int x = 0;
#pragma omp parallel shared(x)
    x = omp_get_thread_num();
    return x < 0;
}
