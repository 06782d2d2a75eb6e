// expect: race-free
// Rows of a matrix product.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

double a[20][20], b[20][20], c[20][20];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 20; j++)
            for (int k = 0; k < 20; k++)
                c[i][j] += a[i][k] * b[k][j];
    return 0;
}
