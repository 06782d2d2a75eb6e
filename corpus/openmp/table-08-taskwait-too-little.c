// expect: race
// A taskwait with a dependence on the first, and the result of the second is read (134).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int sum;

static void work(void) {
    int x = 0, y = 2;
#pragma omp task depend(inout : x) shared(x)
    x++;
#pragma omp task depend(in : x) depend(inout : y) shared(x, y)
    y -= x;
#pragma omp taskwait depend(in : x)
    sum = x + y;
#pragma omp taskwait
}

int main(void) {
#pragma omp parallel
#pragma omp single
    work();
    return 0;
}
