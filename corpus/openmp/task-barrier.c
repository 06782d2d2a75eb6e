// expect: race-free
// A barrier waits for all tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, out[1024];

int main(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        {
#pragma omp task
            {
#pragma omp task
                x = 1;
            }
        }
#pragma omp barrier
        out[omp_get_thread_num()] = x;
    }
    return out[0] != 1;
}
