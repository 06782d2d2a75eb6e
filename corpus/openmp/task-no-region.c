// expect: race
// A task that is created outside of all regions may be deferred as well.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp task
    x++;
    x++;
    return x != 2;
}
