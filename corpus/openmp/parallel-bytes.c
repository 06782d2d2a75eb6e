// expect: race-free
// Threads write different bytes of one word.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

char bytes[1024];

int main(void) {
#pragma omp parallel
    bytes[omp_get_thread_num()] = 1;
    return 0;
}
