// expect: race
// The first section sorts the numbers, the second one reads one of them.
#include <stdio.h>
#include <stdlib.h>

int numbers[100];

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
    int seen = 0;
    for (int i = 0; i < 100; i++)
        numbers[i] = 100 - i;
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        qsort(numbers, 100, sizeof(int), compare);
#pragma omp section
        seen = numbers[50];
    }
    printf("%d\n", seen > 0);
    return 0;
}
