// Cells of a chip, each in one of several shapes, on the smallest area: each is put at a corner of an earlier one, by branch and bound. A task for each place.
//
// RACE: boards that are given up are counted in a critical section of another name.
#define SIZE 9
#include "kernel.h"

enum { MOST = 12, SHAPES = 3, EDGE = 48, DEPTH = 3 };

typedef struct {
    int width, height;
} shape;

typedef struct {
    int x[MOST], y[MOST], shape[MOST];
    int width, height;
    unsigned char used[EDGE][EDGE];
} board;

static shape shapes[MOST][SHAPES];
static int smallest, best_x[MOST], best_y[MOST], best_shape[MOST];
static long long boards, expected_area;

static int is_free(const board *on, int x, int y, shape cell) {
    if (x + cell.width > EDGE || y + cell.height > EDGE) {
        return 0;
    }
    for (int i = 0; i < cell.height; i++) {
        for (int j = 0; j < cell.width; j++) {
            if (on->used[y + i][x + j]) {
                return 0;
            }
        }
    }
    return 1;
}

static int known_area(void) {
    int area;
#pragma omp atomic read
    area = smallest;
    return area;
}

static void keep(const board *done, int n, int area) {
#pragma omp critical(best)
    if (area < known_area()) {
#pragma omp atomic write
        smallest = area;
        memcpy(best_x, done->x, (size_t)n * sizeof(int));
        memcpy(best_y, done->y, (size_t)n * sizeof(int));
        memcpy(best_shape, done->shape, (size_t)n * sizeof(int));
    }
}

static long place(const board *before, int cell, int n);

// Puts a cell somewhere, if it can be there, and goes on; how many boards were looked at.
static long put(const board *before, int cell, int n, int x, int y, int with) {
    shape size = shapes[cell][with];
    if (!is_free(before, x, y, size)) {
        return 0;
    }
    int width = x + size.width > before->width ? x + size.width : before->width;
    int height = y + size.height > before->height ? y + size.height : before->height;
    if (width * height >= known_area()) {
        if (cell <= DEPTH) {
#ifndef RACE
#pragma omp critical(best)
#else
#pragma omp critical(given_up)
#endif
            boards++;
            return 0;
        }
        return 1;
    }
    board next = *before;
    next.x[cell] = x;
    next.y[cell] = y;
    next.shape[cell] = with;
    next.width = width;
    next.height = height;
    for (int i = 0; i < size.height; i++) {
        memset(&next.used[y + i][x], cell + 1, (size_t)size.width);
    }
    return 1 + place(&next, cell + 1, n);
}

static long place(const board *before, int cell, int n) {
    if (cell == n) {
        keep(before, n, before->width * before->height);
        return 0;
    }
    long looked = 0;
    for (int with = 0; with < SHAPES; with++) {
        for (int other = 0; other < cell; other++) {
            for (int side = 0; side < 2; side++) {
                shape neighbour = shapes[other][before->shape[other]];
                int x = before->x[other] + (side ? neighbour.width : 0);
                int y = before->y[other] + (side ? 0 : neighbour.height);
                if (cell > DEPTH) {
                    looked += put(before, cell, n, x, y, with);
                    continue;
                }
#pragma omp task
                {
                    long more = put(before, cell, n, x, y, with);
#pragma omp critical(best)
                    boards += more;
                }
            }
        }
    }
#pragma omp taskwait
    return looked;
}

static void prepare(long n) {
    if (n < 2 || n > MOST) {
        fprintf(stderr, "error: 2 to %d cells\n", MOST);
        exit(2);
    }
    for (long i = 0; i < n; i++) {
        for (int j = 0; j < SHAPES; j++) {
            shapes[i][j].width = 1 + (int)(mixed((uint64_t)(i * SHAPES + j)) % 6);
            shapes[i][j].height = 1 + (int)(mixed((uint64_t)(i * SHAPES + j) + 1000) % 6);
        }
    }
    smallest = EDGE * EDGE;
}

static void work(long n) {
    board first[SHAPES];
#pragma omp parallel
#pragma omp single
    for (int with = 0; with < SHAPES; with++) {
#pragma omp task
        {
            memset(&first[with], 0, sizeof first[with]);
            shape size = shapes[0][with];
            for (int i = 0; i < size.height; i++) {
                memset(first[with].used[i], 1, (size_t)size.width);
            }
            first[with].width = size.width;
            first[with].height = size.height;
            first[with].shape[0] = with;
            place(&first[with], 1, (int)n);
        }
    }
}

// What was kept has this area and no two cells in one place; and no order of the search finds a smaller one.
static int check(long n, long long *result) {
    board on = {0};
    int right = 1;
    for (int i = 0; i < n; i++) {
        shape size = shapes[i][best_shape[i]];
        right &= is_free(&on, best_x[i], best_y[i], size);
        for (int row = 0; row < size.height && right; row++) {
            memset(&on.used[best_y[i] + row][best_x[i]], 1, (size_t)size.width);
        }
        on.width = best_x[i] + size.width > on.width ? best_x[i] + size.width : on.width;
        on.height = best_y[i] + size.height > on.height ? best_y[i] + size.height : on.height;
    }
    *result = smallest;
    right &= on.width * on.height == smallest && boards > 0;
    // Once more, by one task: nothing is smaller.
    expected_area = smallest;
    smallest = EDGE * EDGE;
    for (int with = 0; with < SHAPES; with++) {
        board start = {0};
        shape size = shapes[0][with];
        for (int i = 0; i < size.height; i++) {
            memset(start.used[i], 1, (size_t)size.width);
        }
        start.width = size.width;
        start.height = size.height;
        start.shape[0] = with;
        place(&start, 1, (int)n);
    }
    return right && smallest == expected_area;
}
