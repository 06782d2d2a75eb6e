// expect: race
// All threads clear the same array.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

#include <string.h>
char a[256];

int main(void) {
#pragma omp parallel
    memset(a, 0, sizeof a);
    return 0;
}
