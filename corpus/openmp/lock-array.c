// expect: race-free
// A lock for each bucket.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

omp_lock_t lock[7];
int count[7];

int main(void) {
    for (int i = 0; i < 7; i++)
        omp_init_lock(&lock[i]);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 100; i++) {
        omp_set_lock(&lock[i % 7]);
        count[i % 7]++;
        omp_unset_lock(&lock[i % 7]);
    }
    return count[0] != 15;
}
