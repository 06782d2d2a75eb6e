// expect: deadlock
// The event of a task is never fulfilled.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event)
        x = 1;
#pragma omp taskwait
    }
    return 0;
}
