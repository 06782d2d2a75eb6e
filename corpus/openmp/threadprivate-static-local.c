// expect: race
// A static variable of a function is not private.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int next(void) {
    static int count;
    return ++count;
}

int main(void) {
#pragma omp parallel
    next();
    return 0;
}
