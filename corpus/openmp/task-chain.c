// expect: race-free
// Each task creates the next one, a hundred thousand times, and nobody waits before the end of the region.
#include <stdio.h>

int numbers[100000];

static void next(int i) {
    numbers[i] = i;
    if (i + 1 < 100000)
#pragma omp task firstprivate(i)
        next(i + 1);
}

int main(void) {
    long sum = 0;
#pragma omp parallel
#pragma omp single
    next(0);
    for (int i = 0; i < 100000; i++)
        sum += numbers[i];
    printf("%ld\n", sum);
    return sum != 4999950000;
}
