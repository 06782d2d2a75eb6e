// expect: race-free
// A task is created inside of a critical section that it needs itself.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int sum;

int main(void) {
#pragma omp parallel
    {
#pragma omp critical
        {
#pragma omp task
            {
#pragma omp critical
                sum++;
            }
            sum++;
        }
    }
    return sum < 4;
}
