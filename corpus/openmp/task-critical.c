// expect: race-free
// Tasks add to a sum under a critical section.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int sum;

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 20; i++) {
#pragma omp task
        {
#pragma omp critical
            sum += i;
        }
    }
    return sum != 190;
}
