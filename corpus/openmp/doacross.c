// expect: race-free
// Each iteration waits for the one before.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[64];

int main(void) {
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (int i = 1; i < 64; i++) {
#pragma omp ordered depend(sink : i - 1)
        a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
    }
    return a[63] != 63;
}
