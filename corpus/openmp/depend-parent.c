// expect: race
// Dependences order siblings, not the parent.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        x = 1;
        y = x;
    }
    return 0;
}
