// expect: race
// Only what the set is about is protected by the same address.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y, other;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(mutexinoutset : x)
        other++;
#pragma omp task depend(mutexinoutset : y)
        other++;
    }
    return 0;
}
