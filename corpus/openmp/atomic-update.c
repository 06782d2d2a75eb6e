// expect: race-free
// Atomic updates do not race.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel
#pragma omp atomic
    count++;
    return count < 2;
}
