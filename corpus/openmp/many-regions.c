// expect: race-free
// Thousands of regions.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1024];

int main(void) {
    for (int i = 0; i < 2000; i++)
#pragma omp parallel num_threads(3)
        a[omp_get_thread_num()]++;
    return a[2] != 2000;
}
