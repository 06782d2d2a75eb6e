// expect: race-free
// Tasks of a mutexinoutset exclude each other.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        x = 1;
        for (int i = 0; i < 5; i++) {
#pragma omp task depend(mutexinoutset : x)
            x += i;
        }
#pragma omp task depend(in : x)
        x = x + 0;
    }
    return x != 11;
}
