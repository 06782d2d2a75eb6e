// expect: race-free
// A single uses private variables of the thread that runs it.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
        int own = omp_get_thread_num() + 1;
        int *p = &own;
        *p += 1;
#pragma omp single
        x = *p;
        *p = 0;
    }
    return x == 0;
}
