// expect: race
// The taskwait of Fibonacci was forgotten.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static void fib(int n, int *result) {
    int *a = malloc(2 * sizeof *a);
    if (n < 2) {
        *result = n;
        return;
    }
    a[0] = a[1] = 0;
#pragma omp task
    fib(n - 1, &a[0]);
#pragma omp task
    fib(n - 2, &a[1]);
    *result = a[0] + a[1];
}

int main(void) {
    int result = 0;
#pragma omp parallel
#pragma omp single
    fib(6, &result);
    return 0;
}
