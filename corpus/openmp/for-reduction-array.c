// expect: race-free
// A reduction over an array section.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int count[8] = {0};
#pragma omp parallel for reduction(+ : count[:8])
    for (int i = 0; i < 64; i++)
        count[i % 8]++;
    return count[0] != 8;
}
