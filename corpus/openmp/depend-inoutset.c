// expect: race
// Tasks of an inoutset are parallel to each other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(inoutset : x)
        x++;
#pragma omp task depend(inoutset : x)
        x++;
    }
    return 0;
}
