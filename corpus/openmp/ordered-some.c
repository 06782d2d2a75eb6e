// expect: race-free
// Some iterations have no ordered region.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int sum;

int main(void) {
#pragma omp parallel for ordered schedule(dynamic, 2)
    for (int i = 0; i < 50; i++) {
        if (i % 3 == 0) {
#pragma omp ordered
            sum += i;
        }
    }
    return sum != 408;
}
