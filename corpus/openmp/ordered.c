// expect: race-free
// Ordered regions come in the order of the loop.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int last = -1, wrong;

int main(void) {
#pragma omp parallel for ordered
    for (int i = 0; i < 50; i++) {
#pragma omp ordered
        {
            wrong |= last != i - 1;
            last = i;
        }
    }
    return wrong;
}
