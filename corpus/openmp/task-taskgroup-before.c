// expect: race
// A taskgroup does not wait for tasks that were created before it.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        x = 1;
#pragma omp taskgroup
        {
#pragma omp task
            y = 1;
        }
        y = x;
    }
    return 0;
}
