// expect: race-free
// An undeferred task is one of its set, too: it is kept apart from the others.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(mutexinoutset : x)
        x++;
#pragma omp task depend(mutexinoutset : x) if (0)
        x++;
    }
    return x != 2;
}
