// expect: race
// The parent reads its own local variable, which its task writes.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int out;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
        int x = 0;
#pragma omp task shared(x)
        x = 1;
        out = x;
#pragma omp taskwait
    }
    return 0;
}
