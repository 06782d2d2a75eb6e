// expect: race-free
// An undeferred task is part of its parent.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task if (0)
        x = 1;
        x++;
    }
    return x != 2;
}
