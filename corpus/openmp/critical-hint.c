// expect: race-free
// A critical section with a hint.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count;

int main(void) {
#pragma omp parallel
#pragma omp critical(name) hint(omp_sync_hint_contended)
    count++;
    return 0;
}
