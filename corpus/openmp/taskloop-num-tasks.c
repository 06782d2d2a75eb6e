// expect: race
// Two tasks share what is in the middle.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[51];

int main(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop num_tasks(2)
    for (int i = 0; i < 101; i++)
        a[i / 2] += i;
    return 0;
}
