// expect: race
// Any thread may run the section that reads what thread 0 has just written.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y, z;

int main(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
#pragma omp sections
        {
#pragma omp section
            y = x;
#pragma omp section
            z = 1;
        }
    }
    return 0;
}
