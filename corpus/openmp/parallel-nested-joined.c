// expect: race-free
// What follows an inner region comes after its threads, in the outer thread that has encountered it.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[64][4];

int main(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3)
    {
        int *mine = a[omp_get_thread_num()];
#pragma omp parallel num_threads(4)
        mine[omp_get_thread_num()] = 1;
        mine[0] = mine[1] + mine[2] + mine[3];
    }
    return a[0][0] != 3;
}
