// expect: race-free
// Untied tasks with taskwaits.
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
#pragma omp taskwait
            b = a;
#pragma omp taskyield
            b++;
        }
    }
    return b != 2;
}
