// expect: race-free
// A task with detach is over when its event is fulfilled.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int x, y;

int main(void) {
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event)
        x = 1;
        y = 1;
        omp_fulfill_event(event);
#pragma omp taskwait
        x++;
    }
    return x != 2;
}
