// expect: race-free
// A threadprivate variable is one for each thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int own;
#pragma omp threadprivate(own)

int main(void) {
#pragma omp parallel
    for (int i = 0; i < 10; i++)
        own += i;
    return own != 45;
}
