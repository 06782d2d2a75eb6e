// expect: race-free
// Two loops as one.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[30][40];

int main(void) {
#pragma omp parallel for collapse(2) schedule(dynamic, 5)
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 40; j++)
            a[i][j] = i * j;
    return a[29][39] != 29 * 39;
}
