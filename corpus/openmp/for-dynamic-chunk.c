// expect: race-free
// What iterations of one chunk share, no other chunk touches.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100], b[1000];

int main(void) {
#pragma omp parallel for schedule(dynamic, 10)
    for (int i = 0; i < 1000; i++) {
        a[i / 10] += i;
        b[i] = a[i / 10];
    }
    return 0;
}
