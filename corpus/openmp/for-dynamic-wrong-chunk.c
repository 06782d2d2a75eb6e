// expect: race
// Iterations share what their chunk does not keep together.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < 1000; i++)
        a[i / 10] += i;
    return 0;
}
