// expect: race-free
// A task that is created and waited for in a critical section is part of it.
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
#pragma omp taskwait
    }
    return x != omp_get_max_threads();
}
