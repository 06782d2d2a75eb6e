// expect: race-free
// A constructor, which has hooks, runs before main.
#include <stdio.h>

int count;

__attribute__((constructor)) static void first(void) { count = 1; }

int main(void) {
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum += count;
    printf("%d\n", sum);
    return count != 1;
}
