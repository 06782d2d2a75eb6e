// expect: race-free
// Each iteration has blocks of the API's functions for itself.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

int main(void) {
    int wrong = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : wrong)
    for (int i = 0; i < 16; i++) {
        int *a = omp_aligned_alloc(64, 64, omp_default_mem_alloc);
        int *b = omp_aligned_calloc(128, 4, 4, omp_default_mem_alloc);
        wrong += (uintptr_t)a % 64 != 0 || (uintptr_t)b % 128 != 0 || b[3] != 0;
        a[0] = i;
        a = omp_realloc(a, 4096, omp_default_mem_alloc, omp_default_mem_alloc);
        wrong += a[0] != i;
        omp_free(a, omp_default_mem_alloc);
        omp_free(b, omp_default_mem_alloc);
    }
    printf("%d\n", wrong);
    return wrong;
}
