// expect: race
// Each iteration reads what the one before has written.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1000];

int main(void) {
#pragma omp parallel for
    for (int i = 1; i < 1000; i++)
        a[i] = a[i - 1] + 1;
    return 0;
}
