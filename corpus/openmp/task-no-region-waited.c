// expect: race-free
// Outside of all regions, a taskwait, a taskgroup and a dependence order tasks as they do inside.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp taskgroup
    {
#pragma omp task depend(out : x)
        x++;
#pragma omp task depend(inout : x)
        x++;
    }
    x++;
#pragma omp task
    x++;
#pragma omp taskwait
    x++;
    return x != 5;
}
