// expect: race
// A variable of a row is shared by all its columns, which are other iterations now.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int row[31];

int main(void) {
#pragma omp parallel for collapse(2)
    for (int i = 0; i < 31; i++)
        for (int j = 0; j < 41; j++)
            row[i] += j;
    return 0;
}
