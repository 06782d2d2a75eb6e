// expect: race-free
// inout orders tasks one after the other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 10; i++) {
#pragma omp task depend(inout : x)
        x = x * 2 + i;
    }
    return 0;
}
