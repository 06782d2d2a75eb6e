// expect: race
// A target region on the host, with a race.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp target map(tofrom : x)
    {
#pragma omp parallel
        x++;
    }
    return 0;
}
