// The fast Fourier transform: halves are transformed by a task each, and put together by loops of tasks. The threads share the making of the table of roots.
//
// RACE: nobody waits for the table (nowait).
#define SIZE 1048576
#include "kernel.h"

enum { HERE = 4096, GRAIN = 4096 };

typedef struct {
    double re, im;
} complex_number;

static complex_number *input, *output, *roots;

static void together(complex_number *low, complex_number *high, long i, long apart) {
    complex_number root = roots[i * apart], x = low[i], y = high[i];
    complex_number turned = {root.re * y.re - root.im * y.im, root.re * y.im + root.im * y.re};
    low[i] = (complex_number){x.re + turned.re, x.im + turned.im};
    high[i] = (complex_number){x.re - turned.re, x.im - turned.im};
}

// `apart` is how far the elements of the input are apart.
static void transform_here(const complex_number *from, complex_number *to, long n, long apart) {
    if (n == 1) {
        to[0] = from[0];
        return;
    }
    long half = n / 2;
    transform_here(from, to, half, 2 * apart);
    transform_here(from + apart, to + half, half, 2 * apart);
    for (long i = 0; i < half; i++) {
        together(to, to + half, i, apart);
    }
}

static void transform(const complex_number *from, complex_number *to, long n, long apart) {
    if (n <= HERE) {
        transform_here(from, to, n, apart);
        return;
    }
    long half = n / 2;
#pragma omp task
    transform(from, to, half, 2 * apart);
#pragma omp task
    transform(from + apart, to + half, half, 2 * apart);
#pragma omp taskwait
#pragma omp taskloop grainsize(GRAIN)
    for (long i = 0; i < half; i++) {
        together(to, to + half, i, apart);
    }
}

static void prepare(long n) {
    if (n & (n - 1)) {
        fprintf(stderr, "error: the size is a power of two\n");
        exit(2);
    }
    input = allocate((size_t)n * sizeof *input);
    output = allocate((size_t)n * sizeof *output);
    roots = allocate((size_t)(n / 2 + 1) * sizeof *roots);
    for (long i = 0; i < n; i++) {
        input[i] = (complex_number){(double)(mixed((uint64_t)i) % 1024) / 1024, 0};
    }
}

static void work(long n) {
#pragma omp parallel
    {
#ifndef RACE
#pragma omp for
#else
#pragma omp for nowait
#endif
        for (long i = 0; i <= n / 2; i++) {
            double angle = -2 * 3.14159265358979323846 * (double)i / (double)n;
            roots[i] = (complex_number){cos(angle), sin(angle)};
        }
#pragma omp single
        transform(input, output, n, 1);
    }
}

// Some elements by their definition; and the sum of squares stays, as Parseval says.
static int check(long n, long long *result) {
    double before = 0, after = 0;
    for (long i = 0; i < n; i++) {
        before += input[i].re * input[i].re;
        after += output[i].re * output[i].re + output[i].im * output[i].im;
    }
    int right = fabs(before - after / (double)n) <= 1e-6 * before;
    for (long k = 1; k < n; k = k * 64 + 1) {
        double re = 0, im = 0;
        for (long i = 0; i < n; i++) {
            double angle = -2 * 3.14159265358979323846 * (double)(i * k % n) / (double)n;
            re += input[i].re * cos(angle);
            im += input[i].re * sin(angle);
        }
        right &= fabs(re - output[k].re) < 1e-5 * (double)n && fabs(im - output[k].im) < 1e-5 * (double)n;
    }
    *result = (long long)before;
    return right;
}
