// expect: race
// Two tasks that only read by their dependences, and write.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(in : x)
        x = 1;
#pragma omp task depend(in : x)
        x = 2;
    }
    return 0;
}
