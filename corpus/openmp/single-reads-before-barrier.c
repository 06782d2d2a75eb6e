// expect: race-free
// With a barrier before it, whoever runs the single sees what thread 0 has written.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
#pragma omp barrier
#pragma omp single
        y = x;
    }
    return y != 1;
}
