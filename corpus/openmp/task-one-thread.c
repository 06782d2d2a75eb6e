// expect: race
// In a team of one thread tasks may be deferred, too.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel num_threads(1)
    {
#pragma omp task
        x = 1;
        x = 2;
    }
    return 0;
}
