// expect: race-free
// Two regions come one after the other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    x = 1;
#pragma omp parallel
#pragma omp single
    x = 2;
    return x != 2;
}
