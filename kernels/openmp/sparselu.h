// LU decomposition of a sparse matrix of blocks: the blocks, what is done to them, and the check. How that is put in order is the kernel's.
//
//         k
//       +---+---------+    for each k: the diagonal block is decomposed,
//     k | d | row     |    the row is solved by its L, the column by its U,
//       +---+---------+    and from each block of the rest the product of its column block and its row block is subtracted.
//       | c | rest    |    Blocks of zeros are not stored, until something is subtracted from them.
//       +---+---------+
#include "kernel.h"

enum { BLOCK = 32 };

typedef double block[BLOCK][BLOCK];

static block **matrix;

static block *at(long n, long i, long j) { return matrix[i * n + j]; }

static void decompose(block *diagonal) {
    double(*d)[BLOCK] = *diagonal;
    for (int k = 0; k < BLOCK; k++) {
        for (int i = k + 1; i < BLOCK; i++) {
            d[i][k] /= d[k][k];
            for (int j = k + 1; j < BLOCK; j++) {
                d[i][j] -= d[i][k] * d[k][j];
            }
        }
    }
}

static void solve_row(const block *diagonal, block *row) {
    const double(*d)[BLOCK] = *diagonal;
    double(*r)[BLOCK] = *row;
    for (int k = 0; k < BLOCK; k++) {
        for (int i = k + 1; i < BLOCK; i++) {
            for (int j = 0; j < BLOCK; j++) {
                r[i][j] -= d[i][k] * r[k][j];
            }
        }
    }
}

static void solve_column(const block *diagonal, block *column) {
    const double(*d)[BLOCK] = *diagonal;
    double(*c)[BLOCK] = *column;
    for (int i = 0; i < BLOCK; i++) {
        for (int k = 0; k < BLOCK; k++) {
            c[i][k] /= d[k][k];
            for (int j = k + 1; j < BLOCK; j++) {
                c[i][j] -= c[i][k] * d[k][j];
            }
        }
    }
}

static void subtract(const block *column, const block *row, block *rest) {
    const double(*c)[BLOCK] = *column, (*r)[BLOCK] = *row;
    double(*to)[BLOCK] = *rest;
    for (int i = 0; i < BLOCK; i++) {
        for (int k = 0; k < BLOCK; k++) {
            for (int j = 0; j < BLOCK; j++) {
                to[i][j] -= c[i][k] * r[k][j];
            }
        }
    }
}

static int is_stored(long i, long j) {
    long apart = i < j ? j - i : i - j, least = i < j ? i : j;
    return apart <= 1 || (i % 2 == 0 && j % 2 == 0 && least % 3 == 0);
}

// An element of the matrix. The diagonal is strong: no pivots are needed.
static double element(long n, long row, long column) {
    if (!is_stored(row / BLOCK, column / BLOCK)) {
        return 0;
    }
    double small = (double)(mixed((uint64_t)(row * 1000003 + column)) % 1000) / 1000;
    return row == column ? (double)(n * BLOCK) + small : small;
}

static void prepare(long n) {
    matrix = allocate((size_t)(n * n) * sizeof *matrix);
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++) {
            if (!is_stored(i, j)) {
                continue;
            }
            block *new = matrix[i * n + j] = allocate(sizeof(block));
            for (int r = 0; r < BLOCK; r++) {
                for (int c = 0; c < BLOCK; c++) {
                    (*new)[r][c] = element(n, i * BLOCK + r, j * BLOCK + c);
                }
            }
        }
    }
}

static double decomposed(long n, long row, long column) {
    block *part = at(n, row / BLOCK, column / BLOCK);
    return part ? (*part)[row % BLOCK][column % BLOCK] : 0;
}

// L (U v) = matrix v, for a vector v.
static int check(long n, long long *result) {
    long rows = n * BLOCK;
    double *v = allocate((size_t)rows * sizeof *v), *uv = allocate((size_t)rows * sizeof *v);
    for (long i = 0; i < rows; i++) {
        v[i] = (double)(mixed((uint64_t)i) % 100) / 100;
    }
    for (long i = 0; i < rows; i++) {
        for (long j = i; j < rows; j++) {
            uv[i] += decomposed(n, i, j) * v[j];
        }
    }
    int right = 1;
    double sum = 0;
    for (long i = 0; i < rows; i++) {
        double expected = 0, found = uv[i];
        for (long j = 0; j < rows; j++) {
            expected += element(n, i, j) * v[j];
            found += j < i ? decomposed(n, i, j) * uv[j] : 0;
        }
        right &= fabs(expected - found) <= 1e-9 * fabs(expected);
        sum += found;
    }
    *result = (long long)sum;
    return right;
}
