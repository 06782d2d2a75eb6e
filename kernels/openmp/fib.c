// Fibonacci numbers, a task for each of the two before: the cost of tasks, and of little else.
//
// RACE: the sum is taken before the taskwait.
#define SIZE 32
#include "kernel.h"

// Below this a task would be too small even for this.
enum { SERIAL = 12 };

static long long number;

static long long fib(long n) {
    if (n < 2) {
        return n;
    }
    if (n < SERIAL) {
        return fib(n - 1) + fib(n - 2);
    }
    long long a = 0, b = 0, sum = 0;
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
    if (SEEDED) {
        sum = a + b;
    }
#pragma omp taskwait
    return SEEDED ? sum : a + b;
}

static void prepare(long n) { (void)n; }

static void work(long n) {
#pragma omp parallel
#pragma omp single
    number = fib(n);
}

static int check(long n, long long *result) {
    long long a = 0, b = 1;
    for (long i = 0; i < n; i++) {
        long long next = a + b;
        a = b;
        b = next;
    }
    *result = number;
    return number == a;
}
