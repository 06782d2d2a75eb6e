// expect: race-free
// Chunks that any thread may get count in the variable of the thread that has got them.
#include <stdio.h>
#include <omp.h>

int count;
#pragma omp threadprivate(count)

int main(void) {
    int total = 0;
#pragma omp parallel
    {
        count = 0;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 100; i++)
            count++;
#pragma omp atomic
        total += count;
    }
    printf("%d\n", total);
    return total != 100;
}
