// expect: race-free
// Tasks of a final task are part of it.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task final(1)
        {
#pragma omp task
            x = 1;
            x++;
        }
    }
    return x != 2;
}
