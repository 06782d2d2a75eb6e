// Mergesort as in Cilk: four quarters are sorted in parallel, merged two by two, and merges are cut in two.
//
// RACE: both halves of a merge write the element between them.
#define SIZE 2000000
#include "kernel.h"

enum { SORT_HERE = 2048, MERGE_HERE = 2048, INSERT = 20 };

static int64_t *numbers, *scratch;
static uint64_t sum;

static void insertion(int64_t *low, long n) {
    for (long i = 1; i < n; i++) {
        int64_t value = low[i];
        long j = i;
        for (; j > 0 && low[j - 1] > value; j--) {
            low[j] = low[j - 1];
        }
        low[j] = value;
    }
}

static void quicksort(int64_t *low, long n) {
    while (n > INSERT) {
        int64_t a = low[0], b = low[n / 2], c = low[n - 1];
        int64_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        long i = 0, j = n - 1;
        while (i <= j) {
            while (low[i] < pivot) i++;
            while (low[j] > pivot) j--;
            if (i <= j) {
                int64_t other = low[i];
                low[i++] = low[j];
                low[j--] = other;
            }
        }
        quicksort(low, j + 1);
        low += i;
        n -= i;
    }
    insertion(low, n);
}

static void merge_here(const int64_t *a, long m, const int64_t *b, long n, int64_t *to) {
    while (m > 0 && n > 0) {
        if (*b < *a) {
            *to++ = *b++;
            n--;
        } else {
            *to++ = *a++;
            m--;
        }
    }
    memcpy(to, a, (size_t)m * sizeof *to);
    memcpy(to + m, b, (size_t)n * sizeof *to);
}

// How many of them are less.
static long below(const int64_t *in, long n, int64_t value) {
    long low = 0;
    while (low < n) {
        long middle = (low + n) / 2;
        if (in[middle] < value) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

static void merge(const int64_t *a, long m, const int64_t *b, long n, int64_t *to) {
    if (m < n) {
        merge(b, n, a, m, to);
        return;
    }
    if (m + n <= MERGE_HERE) {
        merge_here(a, m, b, n, to);
        return;
    }
    long i = m / 2, j = below(b, n, a[i]);
#pragma omp task
    merge(a, i + SEEDED, b, j, to);
#pragma omp task
    merge(a + i, m - i, b + j, n - j, to + i + j);
#pragma omp taskwait
}

static void sort(int64_t *low, int64_t *free, long n) {
    if (n <= SORT_HERE) {
        quicksort(low, n);
        return;
    }
    long q = n / 4, rest = n - 3 * q;
    for (int i = 0; i < 4; i++) {
#pragma omp task
        sort(low + i * q, free + i * q, i < 3 ? q : rest);
    }
#pragma omp taskwait
#pragma omp task
    merge(low, q, low + q, q, free);
#pragma omp task
    merge(low + 2 * q, q, low + 3 * q, rest, free + 2 * q);
#pragma omp taskwait
    merge(free, 2 * q, free + 2 * q, q + rest, low);
}

static void prepare(long n) {
    numbers = allocate((size_t)n * sizeof *numbers);
    scratch = allocate((size_t)n * sizeof *scratch);
    for (long i = 0; i < n; i++) {
        numbers[i] = (int64_t)(mixed((uint64_t)i) >> 2);
        sum += (uint64_t)numbers[i];
    }
}

static void work(long n) {
#pragma omp parallel
#pragma omp single
    sort(numbers, scratch, n);
}

static int check(long n, long long *result) {
    int sorted = 1;
    for (long i = 0; i < n; i++) {
        sorted &= i == 0 || numbers[i - 1] <= numbers[i];
        sum -= (uint64_t)numbers[i];
    }
    *result = numbers[n / 2];
    return sorted && sum == 0;
}
