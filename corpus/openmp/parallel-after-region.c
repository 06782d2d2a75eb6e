// expect: race-free
// What follows a region comes after all its threads.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1024];

int main(void) {
    int sum = 0;
#pragma omp parallel
    a[omp_get_thread_num()] = 1;
    for (int i = 0; i < 1024; i++)
        sum += a[i];
    return sum < 1;
}
