// What the kernels have in common: `KERNEL [SIZE]` makes its input, does its work, which alone is timed, and checks the result.
//
// A kernel defines SIZE, prepare, work and check. With -DRACE it has the mistake that its first lines describe.
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef RACE
#define SEEDED 1
#else
#define SEEDED 0
#endif

static void prepare(long size);
static void work(long size);
// What has come out, and whether that is right.
static int check(long size, long long *result);

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory) {
        fprintf(stderr, "error: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

// Numbers that look random, by a mixing function: the same for the same argument, whoever asks.
static inline uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int main(int count, char **arguments) {
    long size = count > 1 ? atol(arguments[1]) : SIZE;
    if (size < 1) {
        fprintf(stderr, "usage: %s [SIZE]\n", arguments[0]);
        return 2;
    }
    prepare(size);
    double start = seconds();
    work(size);
    double time = seconds() - start;
    long long result = 0;
    int right = check(size, &result);
    printf("size %ld\nresult %lld\ntime %.6f\n", size, result, time);
    if (!right) {
        fprintf(stderr, "error: the result is wrong\n");
    }
    return right ? 0 : 1;
}
