// expect: race-free
// Critical sections with the same name do, wherever they are.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

static void more(void) {
#pragma omp critical(name)
    count++;
}

int main(void) {
#pragma omp parallel
    {
        more();
#pragma omp critical(name)
        count++;
    }
    return 0;
}
