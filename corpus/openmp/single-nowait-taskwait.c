// expect: race-free
// The task of a single is a child of the thread that has got it, which waits for it and knows that.
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
        if (mine)
            printf("%d\n", x);
    }
    return x != 42;
}
