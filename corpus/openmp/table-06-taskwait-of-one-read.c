// expect: race-free
// A taskwait with a dependence on one variable, and the other is read behind a full one (132).
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
    sum = x;
#pragma omp taskwait
    sum += y;
}

int main(void) {
#pragma omp parallel
#pragma omp single
    work();
    return sum != 2;
}
