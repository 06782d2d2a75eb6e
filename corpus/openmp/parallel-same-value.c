// expect: race
// All threads write the same value, which is a race all the same.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int flag;

int main(void) {
#pragma omp parallel
    flag = 1;
    return 0;
}
