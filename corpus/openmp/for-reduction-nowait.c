// expect: race
// The result of a reduction is read before the barrier.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int sum, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp for reduction(+ : sum) nowait
        for (int i = 0; i < 100; i++)
            sum += i;
        out[omp_get_thread_num()] = sum;
    }
    return 0;
}
