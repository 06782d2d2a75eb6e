// expect: race-free
// A dependence in an object.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
    omp_depend_t object;
#pragma omp depobj(object) depend(inout : x)
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(depobj : object)
        x++;
#pragma omp taskwait
        y = x;
    }
#pragma omp depobj(object) destroy
    return y != 2;
}
