// expect: race
// Every thread increments the same variable.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel
    count++;
    return 0;
}
