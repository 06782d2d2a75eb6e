// expect: race-free
// A task has copies of the variables of its creator.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 100; i++) {
#pragma omp task
        a[i] = i;
    }
    return a[99] != 99;
}
