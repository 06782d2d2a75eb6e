// expect: race
// num_threads asks for two threads, whatever the environment says.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel num_threads(2)
    count++;
    return 0;
}
