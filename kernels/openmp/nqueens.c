// In how many ways n queens can stand on a board of n rows: a task for each field of a row, with a copy of the board.
//
// RACE: the tasks share their parent's board.
#define SIZE 12
#include "kernel.h"

enum { MOST = 16, DEPTH = 4 };

static long solutions;

static int safe(const char *board, int row, int column) {
    for (int above = 0; above < row; above++) {
        int apart = board[above] - column;
        if (apart == 0 || apart == row - above || apart == above - row) {
            return 0;
        }
    }
    return 1;
}

static long place(char *board, int row, int n) {
    if (row == n) {
        return 1;
    }
    long found = 0;
    if (row >= DEPTH) {
        for (int column = 0; column < n; column++) {
            if (safe(board, row, column)) {
                board[row] = (char)column;
                found += place(board, row + 1, n);
            }
        }
        return found;
    }
    long counts[MOST] = {0};
    for (int column = 0; column < n; column++) {
        if (safe(board, row, column)) {
#pragma omp task shared(counts)
            {
                char copy[MOST];
                char *own = SEEDED ? board : copy;
                if (!SEEDED) {
                    memcpy(copy, board, (size_t)row);
                }
                own[row] = (char)column;
                counts[column] = place(own, row + 1, n);
            }
        }
    }
#pragma omp taskwait
    for (int column = 0; column < n; column++) {
        found += counts[column];
    }
    return found;
}

static void prepare(long n) {
    if (n > MOST) {
        fprintf(stderr, "error: at most %d queens\n", MOST);
        exit(2);
    }
}

static void work(long n) {
    char board[MOST] = {0};
#pragma omp parallel
#pragma omp single
    solutions = place(board, 0, (int)n);
}

static int check(long n, long long *result) {
    static const long known[MOST + 1] = {1,   1,   0,    0,    2,     10,    4,      40,      92,
                                         352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
    *result = solutions;
    return solutions == known[n];
}
