// All proteins against all: how well two can be aligned, gaps included. The rows are shared out, with a task for each pair.
//
// RACE: the tasks have one place for the lines of their tables.
#define SIZE 40
#include "kernel.h"

enum { LONGEST = 400, KINDS = 20, OPEN = 11, EXTEND = 1 };

typedef struct {
    int length;
    unsigned char residues[LONGEST];
} protein;

// The line of a table: the best score that ends here, and the best that ends in a gap.
typedef struct {
    int best[LONGEST + 1], gap[LONGEST + 1];
} line;

static protein *proteins;
static int (*scores)[KINDS];
static int *found;
static line common;

static int greater(int a, int b) { return a > b ? a : b; }

static int align(const protein *a, const protein *b, line *at) {
    at->best[0] = 0;
    for (int j = 1; j <= b->length; j++) {
        at->best[j] = at->gap[j] = -OPEN - EXTEND * j;
    }
    for (int i = 1; i <= a->length; i++) {
        const int *score = scores[a->residues[i - 1]];
        int diagonal = at->best[0], left = at->best[0] = -OPEN - EXTEND * i, gap = left;
        for (int j = 1; j <= b->length; j++) {
            gap = greater(gap, left - OPEN) - EXTEND;
            int down = greater(at->gap[j], at->best[j] - OPEN) - EXTEND;
            int both = diagonal + score[b->residues[j - 1]];
            diagonal = at->best[j];
            left = greater(both, greater(gap, down));
            at->best[j] = left;
            at->gap[j] = down;
        }
    }
    return at->best[b->length];
}

static void prepare(long n) {
    proteins = allocate((size_t)n * sizeof *proteins);
    scores = allocate(KINDS * sizeof *scores);
    found = allocate((size_t)(n * n) * sizeof *found);
    for (int i = 0; i < KINDS; i++) {
        for (int j = 0; j <= i; j++) {
            int score = (int)(mixed((uint64_t)(i * KINDS + j)) % 6) - 4;
            scores[i][j] = scores[j][i] = i == j ? 5 : score;
        }
    }
    for (long i = 0; i < n; i++) {
        proteins[i].length = LONGEST / 2 + (int)(mixed((uint64_t)i) % (LONGEST / 2));
        for (int j = 0; j < proteins[i].length; j++) {
            proteins[i].residues[j] = (unsigned char)(mixed((uint64_t)(i * LONGEST + j)) % KINDS);
        }
    }
}

static void work(long n) {
#pragma omp parallel
#pragma omp for schedule(dynamic)
    for (long i = 0; i < n; i++) {
        for (long j = i + 1; j < n; j++) {
#pragma omp task
            {
                line own;
                found[i * n + j] = align(&proteins[i], &proteins[j], SEEDED ? &common : &own);
            }
        }
    }
}

// The other way round a pair has the same score. Some are enough.
static int check(long n, long long *result) {
    int right = 1;
    line own;
    for (long i = 0; i < n; i++) {
        for (long j = i + 1; j < n; j++) {
            *result += found[i * n + j];
            if ((i + j) % 16 == 0) {
                right &= found[i * n + j] == align(&proteins[j], &proteins[i], &own);
            }
        }
    }
    return right;
}
