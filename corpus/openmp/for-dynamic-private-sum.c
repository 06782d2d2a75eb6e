// expect: race-free
// A private sum over the chunks of a thread is combined under a critical section.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int sum = 0;
#pragma omp parallel
    {
        int own = 0;
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 100; i++)
            own += i;
#pragma omp critical
        sum += own;
    }
    return sum != 4950;
}
