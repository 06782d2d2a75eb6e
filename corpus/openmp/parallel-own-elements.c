// expect: race-free
// Every thread writes the element of its number.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1024];

int main(void) {
#pragma omp parallel
    a[omp_get_thread_num()] = 1;
    return 0;
}
