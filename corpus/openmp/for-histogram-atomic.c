// expect: race-free
// The same with atomic updates.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count[10];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 200; i++)
#pragma omp atomic
        count[i % 10]++;
    return count[0] != 20;
}
