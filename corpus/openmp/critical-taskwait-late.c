// expect: race
// The task is waited for when the critical section is over.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp critical
        {
#pragma omp task
            x++;
        }
#pragma omp taskwait
    }
    return 0;
}
