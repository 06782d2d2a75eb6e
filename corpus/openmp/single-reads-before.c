// expect: race
// Any thread may run the single, and reads what thread 0 has just written.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
#pragma omp single
        y = x;
    }
    return 0;
}
