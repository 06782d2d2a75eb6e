// expect: race
// A temporary variable was declared outside of the loop.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[100];

int main(void) {
    int temporary;
#pragma omp parallel for
    for (int i = 0; i < 100; i++) {
        temporary = i * i;
        a[i] = temporary;
    }
    return 0;
}
