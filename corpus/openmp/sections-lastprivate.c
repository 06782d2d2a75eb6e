// expect: race-free
// lastprivate has the value of the last section.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int x = 0;
#pragma omp parallel sections lastprivate(x)
    {
#pragma omp section
        x = 1;
#pragma omp section
        x = 2;
    }
    return x != 2;
}
