// expect: race
// Two tasks that are part of one critical section are not kept apart.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp critical
    {
#pragma omp task
        x++;
#pragma omp task
        x++;
#pragma omp taskwait
    }
    return 0;
}
