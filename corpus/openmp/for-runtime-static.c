// expect: race-free
// The schedule is set by a call, and fixed.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[101];

int main(void) {
    omp_set_schedule(omp_sched_static, 2);
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < 100; i++)
        a[i / 2] += i;
    return a[0] != 1;
}
