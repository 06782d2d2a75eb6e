// expect: race
// Two iterations have the same index in a table.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int index_of[100], a[100];

int main(void) {
    for (int i = 0; i < 100; i++)
        index_of[i] = i;
    index_of[99] = 3;
#pragma omp parallel for
    for (int i = 0; i < 100; i++)
        a[index_of[i]] = i;
    return 0;
}
