// expect: race-free
// A region with if(0) has one thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel if (0)
    count++;
    return count != 1;
}
