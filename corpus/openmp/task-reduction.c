// expect: race-free
// Tasks take part in the reduction of their group.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 0; i < 20; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
    }
    return sum != 190;
}
