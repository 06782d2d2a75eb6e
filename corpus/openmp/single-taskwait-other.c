// expect: race
// The thread that waits for its tasks need not be the one that has got the single.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        {
#pragma omp task
            x++;
        }
#pragma omp taskwait
#pragma omp single
        x++;
    }
    return x != 2;
}
