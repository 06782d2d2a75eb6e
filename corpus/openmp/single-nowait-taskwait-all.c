// expect: race
// The others do not wait for the task of a single.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
    {
        int mine = 0;
#pragma omp single nowait
        {
            mine = 1;
#pragma omp task
            x = 42;
        }
#pragma omp taskwait
        if (mine || x)
            printf("%d\n", x);
    }
    return x != 42;
}
