/* Accesses that C has and ThreadSanitizer's pass leaves out, each with a function that reads the same bytes; and a loop, a
 * copy, a comparison and a choice, which it has. */

#include <string.h>

struct rgb {
    unsigned char r, g, b;
};

static struct rgb __attribute__((noinline)) inverted(struct rgb x) {
    return (struct rgb){~x.r, ~x.g, ~x.b};
}

void structure_write(struct rgb *p, unsigned n) {
    *p = inverted((struct rgb){n, n + 1, n + 2});
}

unsigned structure_read(struct rgb *p, unsigned n) {
    struct rgb x = inverted(*p);
    return x.r + 3 * x.g + 5 * x.b + n;
}

typedef unsigned _BitInt(24) bits;

void bits_write(bits *p, unsigned n) {
    *p = (bits)n;
}

unsigned bits_read(bits *p, unsigned n) {
    return (unsigned)*p + n;
}

typedef float vector __attribute__((vector_size(32)));

void vector_write(vector *p, unsigned n) {
    *p = (vector){n, 1, 2, 3, 4, 5, 6, 7};
}

unsigned vector_read(vector *p, unsigned n) {
    vector x = *p * *p;
    return x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7] + n;
}

void loop_write(int *p, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        p[i] = i * n;
}

unsigned loop_read(int *p, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += p[i];
    return sum;
}

void copy_write(char *p, unsigned n) {
    static const char from[64];
    memcpy(p, from, n);
}

unsigned copy_read(char *p, unsigned n) {
    static const char to[64];
    return memcmp(p, to, n) == 0;
}

/* Optimised, both are loaded, and the choice is between the values: also the one that the program does not read. */
static unsigned __attribute__((noinline)) chosen(int a[static 1], int b[static 1], unsigned n) {
    return n % 2 ? *a : *b;
}

void choice_write(int *p, unsigned n) {
    p[1] = n;
}

unsigned choice_read(int *p, unsigned n) {
    return chosen(p, p + 1, n);
}
