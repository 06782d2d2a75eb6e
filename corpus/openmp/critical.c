// expect: race-free
// A critical section protects the counter.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel
    for (int i = 0; i < 10; i++)
#pragma omp critical
        count++;
    return count < 20;
}
