// expect: race-free
// So is a task that such a task creates and waits for.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp critical
    {
#pragma omp task
        {
#pragma omp task
            x++;
#pragma omp taskwait
            x++;
        }
#pragma omp taskwait
        x++;
    }
    return x != 3 * omp_get_max_threads();
}
