// What the programs of a batch are made of. What tells of the run has no hooks.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSEEN __attribute__((disable_sanitizer_instrumentation, noinline))

enum { STEPS = 1 << 16, LOCKS = 16 };

static _Alignas(64) unsigned char arena[ARENA];
static char d[8];
static omp_lock_t locks[LOCKS];

static int trace[STEPS][2];
static int steps, actors = 1;

// `me` has done its operation `op`.
static UNSEEN void did(int me, int op) {
    if (steps == STEPS) {
        abort();
    }
    trace[steps][0] = me;
    trace[steps++][1] = op;
}

// The same, by which others come into being: the number of the first.
static UNSEEN int make(int me, int op, int count) {
    did(me, op);
    int first = actors;
    actors += count;
    return first;
}

static UNSEEN void tell(void) {
    printf("arena %llu\n", (unsigned long long)(uintptr_t)arena);
    for (int step = 0; step < steps; step++) {
        printf("%d %d\n", trace[step][0], trace[step][1]);
    }
    fflush(stdout);
}

static UNSEEN void start(void) {
    for (int lock = 0; lock < LOCKS; lock++) {
        omp_init_lock(&locks[lock]);
    }
}

// A pointer that the compiler knows nothing about: no access is left out, and no two are put together.
#define AT(type, at) ({ type *p_ = (type *)(arena + (at)); __asm__ volatile("" : "+r"(p_)); p_; })
#define USE(value) __asm__ volatile("" : : "r"(value))

typedef struct { uint8_t value; } __attribute__((packed)) packed_1;
typedef struct { uint16_t value; } __attribute__((packed)) packed_2;
typedef struct { uint32_t value; } __attribute__((packed)) packed_4;
typedef struct { uint64_t value; } __attribute__((packed)) packed_8;

#define READ(type, at) USE(*AT(type, at))
#define WRITE(type, at) (*AT(type, at) = 1)
#define READ_PACKED(type, at) USE(AT(type, at)->value)
#define WRITE_PACKED(type, at) (AT(type, at)->value = 1)

#define READ_EACH(at, len) do { \
    unsigned sum_ = 0; \
    const unsigned char *all_ = AT(unsigned char, at); \
    for (int i_ = 0; i_ < (len); i_++) sum_ += all_[i_]; \
    USE(sum_); \
} while (0)
#define WRITE_EACH(at, len) do { \
    unsigned char *all_ = AT(unsigned char, at); \
    for (int i_ = 0; i_ < (len); i_++) all_[i_] = 1; \
} while (0)
#define READ_COPY(at, len) do { \
    unsigned char copy_[len]; \
    memcpy(copy_, AT(unsigned char, at), len); \
    __asm__ volatile("" : : "r"(copy_) : "memory"); \
} while (0)
#define WRITE_SET(at, len) memset(AT(unsigned char, at), 1, len)
#define READ_ATOMIC(type, at) do { \
    type value_, *from_ = AT(type, at); \
    _Pragma("omp atomic read") \
    value_ = *from_; \
    USE(value_); \
} while (0)
#define WRITE_ATOMIC(type, at) do { \
    type *to_ = AT(type, at); \
    _Pragma("omp atomic write") \
    *to_ = 1; \
} while (0)
