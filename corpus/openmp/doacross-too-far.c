// expect: race
// Each iteration waits for the one before the last, and reads the last.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[64];

int main(void) {
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (int i = 1; i < 64; i++) {
#pragma omp ordered depend(sink : i - 2)
        a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
    }
    return 0;
}
