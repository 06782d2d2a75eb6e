// expect: race
// The child of an undeferred task may be deferred.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task if (0)
        {
#pragma omp task
            x = 1;
        }
        x++;
    }
    return 0;
}
