// expect: race
// The sum does not depend on the second (177).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int fib(int n) {
    int i, j, s;
    if (n < 2)
        return n;
#pragma omp task shared(i) depend(out : i)
    i = fib(n - 1);
#pragma omp task shared(j) depend(out : j)
    j = fib(n - 2);
#pragma omp task shared(i, j, s) depend(in : i) depend(out : s)
    s = i + j;
#pragma omp taskwait
    return s;
}

int main(void) {
    int result = 0;
#pragma omp parallel
#pragma omp single
    result = fib(8);
    return result < 0;
}
