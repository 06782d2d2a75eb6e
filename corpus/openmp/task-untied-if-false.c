// expect: race-free
// A task that is untied and undeferred has run when its creator goes on.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task untied if (0)
        x++;
        if (x != 1) {
            exit(3);
        }
        x++;
    }
    return x != 2;
}
