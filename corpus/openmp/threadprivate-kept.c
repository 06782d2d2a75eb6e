// expect: race-free
// Each thread has in the second region what it has left in the first: a block of its own.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int *own;
#pragma omp threadprivate(own)

int main(void) {
    int wrong = 0;
    omp_set_dynamic(0);
#pragma omp parallel
    {
        own = malloc(sizeof *own);
        *own = omp_get_thread_num();
    }
    for (int round = 0; round < 3; round++) {
#pragma omp parallel reduction(+ : wrong)
        wrong += *own != omp_get_thread_num();
    }
#pragma omp parallel
    free(own);
    printf("%d\n", wrong);
    return wrong;
}
