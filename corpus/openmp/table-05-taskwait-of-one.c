// expect: race
// A taskwait with a dependence on one variable, and both are read (131).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int sum;

static void work(void) {
    int x = 0, y = 2;
#pragma omp task depend(inout : x) shared(x)
    x++;
#pragma omp task shared(y)
    y--;
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
