// expect: race-free
// A taskwait with dependences on both variables (133).
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
#pragma omp taskwait depend(in : x, y)
    sum = x + y;
}

int main(void) {
#pragma omp parallel
#pragma omp single
    work();
    return sum != 2;
}
