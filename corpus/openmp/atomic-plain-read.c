// expect: race
// A plain read beside atomic updates.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int count, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp atomic
        count++;
        out[omp_get_thread_num()] = count;
    }
    return 0;
}
