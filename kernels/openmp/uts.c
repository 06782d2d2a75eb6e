// The nodes of an unbalanced tree, of which nothing is known but how a node leads to its children: a task for each.
//
// RACE: leaves are counted without an atomic.
#define SIZE 2000
#include "kernel.h"

// A node but for the root has so many children, or none. A hash of a node is as long a calculation as a cryptographic one.
enum { CHILDREN = 8, PER_MILLE = 124, ROUNDS = 40 };

static long long nodes, leaves;

static uint64_t child_of(uint64_t node, long number) {
    uint64_t hash = node + (uint64_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        hash = mixed(hash);
    }
    return hash;
}

static int children(uint64_t node) { return node % 1000 < PER_MILLE ? CHILDREN : 0; }

static void search(uint64_t node, long count) {
#pragma omp atomic
    nodes++;
    if (count == 0) {
#ifndef RACE
#pragma omp atomic
#endif
        leaves++;
    }
    for (long i = 0; i < count; i++) {
#pragma omp task
        {
            uint64_t child = child_of(node, i);
            search(child, children(child));
        }
    }
}

static void prepare(long n) { (void)n; }

static void work(long n) {
#pragma omp parallel
#pragma omp single
    search(1, n);
}

static void count(uint64_t node, long number, long long *all, long long *ends) {
    ++*all;
    *ends += number == 0;
    for (long i = 0; i < number; i++) {
        uint64_t child = child_of(node, i);
        count(child, children(child), all, ends);
    }
}

static int check(long n, long long *result) {
    long long all = 0, ends = 0;
    count(1, n, &all, &ends);
    *result = nodes;
    return nodes == all && leaves == ends;
}
