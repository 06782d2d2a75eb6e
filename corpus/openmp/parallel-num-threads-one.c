// expect: race-free
// A region with num_threads(1) has one thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel num_threads(1)
    count++;
    return count != 1;
}
