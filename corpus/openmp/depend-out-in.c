// expect: race-free
// Readers come after the writer.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y, z;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(in : x)
        y = x;
#pragma omp task depend(in : x)
        z = x;
    }
    return y + z != 2;
}
