// expect: race-free
// Where a task would like to run says nothing about order; it is joined by the taskwait.
#include <stdio.h>

int value;

int main(void) {
    int seen = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task affinity(value)
        value = 5;
#pragma omp taskwait
        seen = value;
    }
    printf("%d\n", seen);
    return seen != 5;
}
