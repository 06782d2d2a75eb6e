// Poisson's equation on a plate by Jacobi's method: a task for each block of a sweep, in order by `depend` on its neighbours alone.
//
// RACE: a block does not depend on those above and below.
#define SIZE 512
#include "kernel.h"

enum { BLOCK = 64, SWEEPS = 20 };

// Two plates with a border of zeros, and the right-hand side.
static double *plates[2], *source;

static double *block_of(double *plate, long width, long i, long j) {
    return plate + (1 + i * BLOCK) * width + 1 + j * BLOCK;
}

static void sweep(const double *from, const double *right, double *to, long width) {
    for (long i = 0; i < BLOCK; i++) {
        for (long j = 0; j < BLOCK; j++) {
            long at = i * width + j;
            to[at] = 0.25 * (from[at - width] + from[at + width] + from[at - 1] + from[at + 1] + right[at]);
        }
    }
}

static void prepare(long n) {
    if (n % BLOCK) {
        fprintf(stderr, "error: the size is a multiple of %d\n", BLOCK);
        exit(2);
    }
    long width = n + 2;
    for (int i = 0; i < 2; i++) {
        plates[i] = allocate((size_t)(width * width) * sizeof(double));
    }
    source = allocate((size_t)(width * width) * sizeof(double));
    for (long i = 0; i < width * width; i++) {
        source[i] = (double)(mixed((uint64_t)i) % 1024) / 1024;
    }
}

static void work(long n) {
    long blocks = n / BLOCK, width = n + 2;
#pragma omp parallel
#pragma omp single
    for (long step = 0; step < SWEEPS; step++) {
        double *from = plates[step % 2], *to = plates[1 - step % 2];
        for (long i = 0; i < blocks; i++) {
            for (long j = 0; j < blocks; j++) {
                double *old = block_of(from, width, i, j), *new = block_of(to, width, i, j);
                // At the border a block is its own neighbour.
                double *above = i > 0 && !SEEDED ? block_of(from, width, i - 1, j) : old;
                double *below = i + 1 < blocks && !SEEDED ? block_of(from, width, i + 1, j) : old;
                double *left = j > 0 ? block_of(from, width, i, j - 1) : old;
                double *right = j + 1 < blocks ? block_of(from, width, i, j + 1) : old;
                double *here = block_of(source, width, i, j);
#pragma omp task depend(in : *old, *above, *below, *left, *right) depend(out : *new)
                sweep(old, here, new, width);
            }
        }
    }
}

// The same, by one thread and row by row.
static int check(long n, long long *result) {
    long width = n + 2;
    size_t bytes = (size_t)(width * width) * sizeof(double);
    double *from = allocate(bytes), *to = allocate(bytes);
    for (long step = 0; step < SWEEPS; step++) {
        for (long i = 1; i <= n; i++) {
            for (long j = 1; j <= n; j++) {
                long at = i * width + j;
                to[at] = 0.25 * (from[at - width] + from[at + width] + from[at - 1] + from[at + 1] + source[at]);
            }
        }
        double *other = from;
        from = to;
        to = other;
    }
    double sum = 0;
    int right = 1;
    for (long at = 0; at < width * width; at++) {
        sum += from[at];
        right &= fabs(from[at] - plates[SWEEPS % 2][at]) < 1e-12;
    }
    *result = (long long)sum;
    return right;
}
