// expect: race
// Dependences order siblings, not tasks of different parents.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        {
#pragma omp task depend(inout : x)
            x++;
        }
#pragma omp task
        {
#pragma omp task depend(inout : x)
            x++;
        }
    }
    return 0;
}
