// expect: race
// Every thread creates a task that changes the same variable.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp task
        x++;
    }
    return 0;
}
