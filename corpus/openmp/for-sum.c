// expect: race
// A sum without a reduction.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int sum = 0;
#pragma omp parallel for
    for (int i = 0; i < 100; i++)
        sum += i;
    return sum < 0;
}
