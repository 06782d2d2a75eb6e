// expect: race
// What is outside of the ordered region is not ordered.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int last, other;

int main(void) {
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 50; i++) {
#pragma omp ordered
        last = i;
        other = i;
    }
    return 0;
}
