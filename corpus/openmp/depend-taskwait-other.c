// expect: race
// A taskwait with a dependence waits for nothing else.
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
#pragma omp task depend(out : z)
        z = 1;
#pragma omp taskwait depend(in : x)
        y = z;
    }
    return 0;
}
