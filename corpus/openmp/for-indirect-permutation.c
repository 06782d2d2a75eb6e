// expect: race-free
// The table is a permutation.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int index_of[100], a[100];

int main(void) {
    for (int i = 0; i < 100; i++)
        index_of[i] = (i * 7) % 100;
#pragma omp parallel for
    for (int i = 0; i < 100; i++)
        a[index_of[i]] = i;
    return 0;
}
