// expect: race-free
// A writer and a reader in this order (072).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int i = 0, j = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : i)
        i = 1;
#pragma omp task depend(in : i)
        j = i;
    }
    return j != 1;
}
