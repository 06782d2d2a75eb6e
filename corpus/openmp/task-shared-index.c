// expect: race
// The index of the loop is shared with the tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[101];

int main(void) {
    int i;
#pragma omp parallel
#pragma omp single
    for (i = 0; i < 100; i++) {
#pragma omp task shared(i)
        a[i] = 1;
    }
    return 0;
}
