// expect: race
// taskwait does not wait for grandchildren.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        {
#pragma omp task
            x = 1;
        }
#pragma omp taskwait
        y = x;
    }
    return 0;
}
