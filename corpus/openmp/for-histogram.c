// expect: race
// A histogram without protection.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count[10];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 200; i++)
        count[i % 10]++;
    return 0;
}
