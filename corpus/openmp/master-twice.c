// expect: race-free
// Thread 0 does both, one after the other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
#pragma omp master
        x++;
    }
    return x != 2;
}
