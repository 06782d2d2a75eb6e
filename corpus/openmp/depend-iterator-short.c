// expect: race
// The iterator leaves out the last.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[8], sum;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 8; i++) {
#pragma omp task depend(out : a[i])
            a[i] = i;
        }
#pragma omp task depend(iterator(i = 0 : 7), in : a[i])
        for (int i = 0; i < 8; i++)
            sum += a[i];
    }
    return 0;
}
