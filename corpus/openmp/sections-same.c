// expect: race
// Two sections write the same variable.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel sections
    {
#pragma omp section
        x = 1;
#pragma omp section
        x = 2;
    }
    return 0;
}
