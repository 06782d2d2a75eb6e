// expect: race
// Two tasks of one variable, without a dependence (table 1 of the DRDP paper: 027).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int i = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        i = 1;
#pragma omp task
        i = 2;
    }
    return i == 0;
}
