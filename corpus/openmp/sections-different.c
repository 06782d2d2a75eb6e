// expect: race-free
// Each section has a variable of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a, b, c;

int main(void) {
#pragma omp parallel sections
    {
#pragma omp section
        a = 1;
#pragma omp section
        b = 1;
    }
    return a + b + c != 2;
}
