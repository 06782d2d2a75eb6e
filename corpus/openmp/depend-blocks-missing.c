// expect: race
// The wave front forgets its left neighbour.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[6][6];

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 1; i < 6; i++)
        for (int j = 1; j < 6; j++) {
#pragma omp task depend(in : a[i - 1][j]) depend(out : a[i][j])
            a[i][j] = a[i - 1][j] + a[i][j - 1] + 1;
        }
    return 0;
}
