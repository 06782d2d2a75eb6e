// expect: race
// An untied task does not wait for its child.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a, b;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task untied
        {
#pragma omp task
            a = 1;
#pragma omp taskyield
            b = a;
        }
    }
    return 0;
}
