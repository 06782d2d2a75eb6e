// LU decomposition of a sparse matrix of blocks (sparselu.h), a task for each block of a step, in order by `depend` alone.
//
// RACE: a block does not depend on that of its row.
#define SIZE 32
#include "sparselu.h"

static void work(long n) {
#pragma omp parallel
#pragma omp single
    for (long k = 0; k < n; k++) {
        block *diagonal = at(n, k, k);
#pragma omp task depend(inout : *diagonal)
        decompose(diagonal);
        for (long j = k + 1; j < n; j++) {
            block *row = at(n, k, j), *column = at(n, j, k);
            if (row) {
#pragma omp task depend(in : *diagonal) depend(inout : *row)
                solve_row(diagonal, row);
            }
            if (column) {
#pragma omp task depend(in : *diagonal) depend(inout : *column)
                solve_column(diagonal, column);
            }
        }
        for (long i = k + 1; i < n; i++) {
            for (long j = k + 1; j < n; j++) {
                block *column = at(n, i, k), *row = at(n, k, j);
                if (!column || !row) {
                    continue;
                }
                if (!at(n, i, j)) {
                    matrix[i * n + j] = allocate(sizeof(block));
                }
                block *rest = at(n, i, j);
#ifndef RACE
#pragma omp task depend(in : *column, *row) depend(inout : *rest)
#else
#pragma omp task depend(in : *column) depend(inout : *rest)
#endif
                subtract(column, row, rest);
            }
        }
    }
}
