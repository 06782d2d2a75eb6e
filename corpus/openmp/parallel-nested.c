// expect: race
// Inner teams of different outer threads write the same variable.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
#pragma omp master
    x = 1;
    return 0;
}
