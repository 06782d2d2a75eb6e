// expect: race
// Every thread writes its element and reads that of its neighbour.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[1025], b[1025];

int main(void) {
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        a[me] = me;
        b[me] = a[me + 1];
    }
    return 0;
}
