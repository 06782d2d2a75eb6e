// expect: race
// Each thread creates a task with the same dependence (175).
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int a = 0;
#pragma omp parallel
    {
#pragma omp task depend(inout : a) shared(a)
        a++;
    }
    return a < 0;
}
