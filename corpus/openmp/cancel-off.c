// expect: race-free
// Cancellation is off unless the environment turns it on: the loop is whole.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 100; i++) {
        if (i == 50) {
#pragma omp cancel for
        }
        a[i] = 1;
    }
    return a[99] != 1;
}
