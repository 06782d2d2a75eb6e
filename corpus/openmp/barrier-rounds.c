// expect: race-free
// Two arrays take turns, with a barrier after each round.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int a[2][1026];

int main(void) {
#pragma omp parallel
    {
        int me = omp_get_thread_num() + 1;
        for (int round = 0; round < 6; round++) {
            a[(round + 1) % 2][me] = a[round % 2][me - 1] + a[round % 2][me + 1];
#pragma omp barrier
        }
    }
    return 0;
}
