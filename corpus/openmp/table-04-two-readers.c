// expect: race-free
// A writer and two readers (079).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int i = 0, j = 0, k = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : i)
        i = 1;
#pragma omp task depend(in : i)
        j = i;
#pragma omp task depend(in : i)
        k = i;
    }
    return j + k != 2;
}
