// expect: race-free
// A barrier stands between writing own elements and reading those of neighbours.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1025], b[1025];

int main(void) {
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        a[me] = me;
#pragma omp barrier
        b[me] = a[me + 1];
    }
    return 0;
}
