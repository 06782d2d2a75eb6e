// expect: race-free
// Atomic updates of a floating-point number.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

double sum;

int main(void) {
#pragma omp parallel
#pragma omp atomic
    sum += 1.5;
    return sum < 3;
}
