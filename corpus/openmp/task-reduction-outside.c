// expect: race
// A task of the group does not take part in its reduction.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum)
        {
#pragma omp task shared(sum)
            sum += 1;
#pragma omp task shared(sum)
            sum += 2;
        }
    }
    return sum < 0;
}
