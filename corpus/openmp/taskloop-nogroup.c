// expect: race
// A loop of tasks without its group is not waited for.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[20], sum;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop nogroup
        for (int i = 0; i < 20; i++)
            a[i] = i;
        sum = a[3];
    }
    return 0;
}
