// expect: race
// The index of the inner loop is shared.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100][10];

int main(void) {
    int j;
#pragma omp parallel for
    for (int i = 0; i < 100; i++)
        for (j = 0; j < 10; j++)
            a[i][j] = 1;
    return 0;
}
