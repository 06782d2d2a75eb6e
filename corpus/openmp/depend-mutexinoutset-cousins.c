// expect: race
// Sets of tasks that are no siblings are not kept apart, also if one set is over when the other begins.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

static void add(void) {
#pragma omp task depend(mutexinoutset : x)
    x++;
#pragma omp taskwait
}

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        add();
#pragma omp task
        add();
    }
    return x != 2;
}
