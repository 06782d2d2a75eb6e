// expect: race-free
// Tasks use the variable of the thread that runs them.
#include <stdio.h>
#include <omp.h>

int count;
#pragma omp threadprivate(count)

int main(void) {
    int total = 0;
#pragma omp parallel
    {
        count = 0;
#pragma omp barrier
#pragma omp single
        for (int i = 0; i < 100; i++)
#pragma omp task
            count++;
#pragma omp atomic
        total += count;
    }
    printf("%d\n", total);
    return total != 100;
}
