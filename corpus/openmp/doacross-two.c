// expect: race-free
// A wave front over two loops.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[12][12];

int main(void) {
#pragma omp parallel for ordered(2) schedule(static, 1)
    for (int i = 1; i < 12; i++)
        for (int j = 1; j < 12; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
            a[i][j] = a[i - 1][j] + a[i][j - 1] + 1;
#pragma omp ordered depend(source)
        }
    return a[1][1] != 1;
}
