// expect: race
// Tasks of two singles are siblings only if one thread has got both.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        {
#pragma omp task depend(out : x)
            x++;
        }
#pragma omp single nowait
        {
#pragma omp task depend(inout : x)
            x++;
        }
    }
    return x != 2;
}
