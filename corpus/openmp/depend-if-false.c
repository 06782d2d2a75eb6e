// expect: race-free
// An undeferred task waits for those that it depends on.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(inout : x) if (0)
        x++;
        x++;
    }
    return x != 3;
}
