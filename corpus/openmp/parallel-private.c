// expect: race-free
// A private variable is one for each thread.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int x = 5;
#pragma omp parallel private(x)
    {
        x = omp_get_thread_num();
        x++;
    }
    return x != 5;
}
