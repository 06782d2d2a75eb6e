// expect: race
// The task may run before the critical section begins in which it is waited for.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp task
        x++;
#pragma omp critical
        {
#pragma omp taskwait
        }
    }
    return 0;
}
