// expect: race-free
// lastprivate of a loop of tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int last = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop lastprivate(last)
    for (int i = 0; i < 30; i++)
        last = i;
    return last != 29;
}
