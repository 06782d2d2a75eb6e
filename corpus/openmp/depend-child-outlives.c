// expect: race
// A dependence waits for a task, not for its children.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        {
#pragma omp task
            x = 1;
        }
#pragma omp task depend(in : x)
        y = x;
    }
    return 0;
}
