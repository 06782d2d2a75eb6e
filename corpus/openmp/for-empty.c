// expect: race-free
// A loop without iterations.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int n = 0, x = 0;
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < n; i++)
            x++;
#pragma omp for schedule(dynamic)
        for (int i = 5; i < n; i++)
            x++;
    }
    return x;
}
