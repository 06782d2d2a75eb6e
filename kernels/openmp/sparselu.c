// LU decomposition of a sparse matrix of blocks (sparselu.h), a task for each block of a step, with a taskwait between steps.
//
// RACE: no taskwait between the row and the column, and the blocks that need them.
#define SIZE 32
#include "sparselu.h"

static void work(long n) {
#pragma omp parallel
#pragma omp single
    for (long k = 0; k < n; k++) {
        decompose(at(n, k, k));
        for (long j = k + 1; j < n; j++) {
            if (at(n, k, j)) {
#pragma omp task
                solve_row(at(n, k, k), at(n, k, j));
            }
            if (at(n, j, k)) {
#pragma omp task
                solve_column(at(n, k, k), at(n, j, k));
            }
        }
#ifndef RACE
#pragma omp taskwait
#endif
        for (long i = k + 1; i < n; i++) {
            for (long j = k + 1; j < n; j++) {
                if (at(n, i, k) && at(n, k, j)) {
#pragma omp task
                    {
                        if (!at(n, i, j)) {
                            matrix[i * n + j] = allocate(sizeof(block));
                        }
                        subtract(at(n, i, k), at(n, k, j), at(n, i, j));
                    }
                }
            }
        }
#pragma omp taskwait
    }
}
