// expect: race-free
// One of several sections cancels the others; each has a variable of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int a, b, c;

int main(void) {
#pragma omp parallel sections
    {
#pragma omp section
        {
            a = 1;
#pragma omp cancel sections
            a = 2;
        }
#pragma omp section
        b = 1;
#pragma omp section
        c = 1;
    }
    return a != 1;
}
