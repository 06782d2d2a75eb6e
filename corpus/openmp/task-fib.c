// expect: race-free
// Fibonacci numbers with two tasks and a taskwait.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int fib(int n) {
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    int result = 0;
#pragma omp parallel
#pragma omp single
    result = fib(10);
    return result != 55;
}
