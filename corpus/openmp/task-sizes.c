// expect: race-free
// Tasks with more and with less of their own, one after the other: what one has left in memory is not the next one's.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static long sums[64];

int main(void) {
#pragma omp parallel
    {
        long me = omp_get_thread_num(), *sum = &sums[me];
        for (int round = 0; round < 4; round++) {
            long a = 1, b = 2, c = 3;
#pragma omp task firstprivate(a, b, c, me, sum)
            {
#pragma omp task firstprivate(sum)
                *sum += 1;
#pragma omp taskwait
                *sum += a + b + c + me;
            }
#pragma omp taskwait
#pragma omp task firstprivate(sum)
            *sum += 1;
#pragma omp taskwait
#pragma omp taskyield
        }
    }
    return sums[0] != 4 * 8 || sums[1] != 4 * 9;
}
