// The most valuable load of a knapsack, by branch and bound: a task for either choice, and a bound that all share.
//
// RACE: the bound is read without an atomic.
#define SIZE 44
#include "kernel.h"

enum { MOST = 64, DEPTH = 10 };

typedef struct {
    int weight, value;
} item;

static item items[MOST];
static int room_at_first;
static int best;

static int bound(void) {
    int known;
#ifndef RACE
#pragma omp atomic read
#endif
    known = best;
    return known;
}

static void improve(int value) {
    if (value <= bound()) {
        return;
    }
#pragma omp critical
    if (value > bound()) {
#pragma omp atomic write
        best = value;
    }
}

static void pack(int i, int n, int room, int value) {
    if (room < 0) {
        return;
    }
    if (i == n || room == 0) {
        improve(value);
        return;
    }
    // The items come by value for their weight: not more than this can be added.
    if (value + (double)room * items[i].value / items[i].weight <= bound()) {
        return;
    }
    if (i >= DEPTH) {
        pack(i + 1, n, room - items[i].weight, value + items[i].value);
        pack(i + 1, n, room, value);
        return;
    }
#pragma omp task
    pack(i + 1, n, room - items[i].weight, value + items[i].value);
#pragma omp task
    pack(i + 1, n, room, value);
#pragma omp taskwait
}

static int denser(const void *one, const void *other) {
    const item *a = one, *b = other;
    int difference = b->value * a->weight - a->value * b->weight;
    return difference ? difference : a->weight - b->weight;
}

static void prepare(long n) {
    if (n > MOST) {
        fprintf(stderr, "error: at most %d items\n", MOST);
        exit(2);
    }
    for (long i = 0; i < n; i++) {
        items[i].weight = (int)(mixed((uint64_t)i) % 1000) + 100;
        items[i].value = items[i].weight + (int)(mixed((uint64_t)i + 99) % 100);
        room_at_first += items[i].weight;
    }
    room_at_first /= 2;
    qsort(items, (size_t)n, sizeof *items, denser);
}

static void work(long n) {
#pragma omp parallel
#pragma omp single
    pack(0, (int)n, room_at_first, 0);
}

// By a table of what can be had for each weight.
static int check(long n, long long *result) {
    int *most = allocate((size_t)(room_at_first + 1) * sizeof *most);
    for (long i = 0; i < n; i++) {
        for (int room = room_at_first; room >= items[i].weight; room--) {
            int with = most[room - items[i].weight] + items[i].value;
            most[room] = with > most[room] ? with : most[room];
        }
    }
    *result = best;
    return best == most[room_at_first];
}
