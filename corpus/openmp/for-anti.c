// expect: race
// Each iteration reads what the next one overwrites.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1001];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 1000; i++)
        a[i] = a[i + 1] + 1;
    return 0;
}
