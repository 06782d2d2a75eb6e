// The product of matrices by Strassen's algorithm: seven products of halves, a task each.
//
// RACE: two of the seven use the same memory for their sums.
#define SIZE 512
#include "kernel.h"

enum { HERE = 64 };

static double *a, *b, *c;

// A square part of a matrix, and how far its rows are apart.
typedef struct {
    double *at;
    long apart;
} part;

static part quarter(part whole, long half, int row, int column) {
    return (part){whole.at + row * half * whole.apart + column * half, whole.apart};
}

// to = x + sign * y
static void sum(part to, part x, double sign, part y, long n) {
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++) {
            to.at[i * to.apart + j] = x.at[i * x.apart + j] + sign * y.at[i * y.apart + j];
        }
    }
}

static void product_here(part to, part x, part y, long n) {
    for (long i = 0; i < n; i++) {
        double *row = to.at + i * to.apart;
        for (long j = 0; j < n; j++) {
            row[j] = 0;
        }
        for (long k = 0; k < n; k++) {
            double factor = x.at[i * x.apart + k];
            const double *other = y.at + k * y.apart;
            for (long j = 0; j < n; j++) {
                row[j] += factor * other[j];
            }
        }
    }
}

static void product(part to, part x, part y, long n) {
    if (n <= HERE) {
        product_here(to, x, y, n);
        return;
    }
    long h = n / 2, area = h * h;
    // Seven products, and two sums for each.
    double *memory = allocate(21 * (size_t)area * sizeof *memory);
    part m[7], s[7], t[7];
    for (int i = 0; i < 7; i++) {
        m[i] = (part){memory + i * area, h};
        s[i] = (part){memory + (7 + i) * area, h};
        t[i] = (part){memory + (14 + i) * area, h};
    }
    if (SEEDED) {
        s[4] = s[1];
    }
    part x11 = quarter(x, h, 0, 0), x12 = quarter(x, h, 0, 1), x21 = quarter(x, h, 1, 0), x22 = quarter(x, h, 1, 1);
    part y11 = quarter(y, h, 0, 0), y12 = quarter(y, h, 0, 1), y21 = quarter(y, h, 1, 0), y22 = quarter(y, h, 1, 1);
#pragma omp task shared(s, t, m)
    {
        sum(s[0], x11, 1, x22, h);
        sum(t[0], y11, 1, y22, h);
        product(m[0], s[0], t[0], h);
    }
#pragma omp task shared(s, t, m)
    {
        sum(s[1], x21, 1, x22, h);
        product(m[1], s[1], y11, h);
    }
#pragma omp task shared(s, t, m)
    {
        sum(t[2], y12, -1, y22, h);
        product(m[2], x11, t[2], h);
    }
#pragma omp task shared(s, t, m)
    {
        sum(t[3], y21, -1, y11, h);
        product(m[3], x22, t[3], h);
    }
#pragma omp task shared(s, t, m)
    {
        sum(s[4], x11, 1, x12, h);
        product(m[4], s[4], y22, h);
    }
#pragma omp task shared(s, t, m)
    {
        sum(s[5], x21, -1, x11, h);
        sum(t[5], y11, 1, y12, h);
        product(m[5], s[5], t[5], h);
    }
#pragma omp task shared(s, t, m)
    {
        sum(s[6], x12, -1, x22, h);
        sum(t[6], y21, 1, y22, h);
        product(m[6], s[6], t[6], h);
    }
#pragma omp taskwait
    for (long i = 0; i < h; i++) {
        double *upper = to.at + i * to.apart, *lower = upper + h * to.apart;
        for (long j = 0; j < h; j++) {
            long at = i * h + j;
            double m1 = m[0].at[at], m2 = m[1].at[at], m3 = m[2].at[at], m4 = m[3].at[at];
            upper[j] = m1 + m4 - m[4].at[at] + m[6].at[at];
            upper[h + j] = m3 + m[4].at[at];
            lower[j] = m2 + m4;
            lower[h + j] = m1 - m2 + m3 + m[5].at[at];
        }
    }
    free(memory);
}

static void prepare(long n) {
    if (n & (n - 1)) {
        fprintf(stderr, "error: the size is a power of two\n");
        exit(2);
    }
    size_t bytes = (size_t)(n * n) * sizeof *a;
    a = allocate(bytes);
    b = allocate(bytes);
    c = allocate(bytes);
    for (long i = 0; i < n * n; i++) {
        a[i] = (double)(mixed((uint64_t)i) % 8);
        b[i] = (double)(mixed((uint64_t)(i + n * n)) % 8);
    }
}

static void work(long n) {
#pragma omp parallel
#pragma omp single
    product((part){c, n}, (part){a, n}, (part){b, n}, n);
}

// All are whole numbers, so that c v = a (b v) holds exactly; v is random.
static int check(long n, long long *result) {
    double *v = allocate((size_t)n * sizeof *v), *bv = allocate((size_t)n * sizeof *v);
    for (long i = 0; i < n; i++) {
        v[i] = (double)(mixed((uint64_t)i * 77) % 16);
    }
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++) {
            bv[i] += b[i * n + j] * v[j];
        }
    }
    int right = 1;
    for (long i = 0; i < n; i++) {
        double expected = 0, found = 0;
        for (long j = 0; j < n; j++) {
            expected += a[i * n + j] * bv[j];
            found += c[i * n + j] * v[j];
        }
        right &= expected == found;
        *result += (long long)found;
    }
    return right;
}
