// expect: race-free
// A loop with a large unsigned index.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
    unsigned long start = 0xfffffffffffff000ul;
#pragma omp parallel for schedule(dynamic, 3)
    for (unsigned long i = start; i < start + 100; i++)
        a[i - start] = 1;
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += a[i];
    return sum != 100;
}
