// expect: race-free
// A reduction over a loop of tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int sum = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : sum)
    for (int i = 0; i < 100; i++)
        sum += i;
    return sum != 4950;
}
