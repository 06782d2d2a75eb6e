// expect: race-free
// In a single: a region of one thread with a task, one of two threads, and one of one thread again: their frames are in the same places.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

static int results[5];

static __attribute__((noinline)) void note(int *where, int value) { *where = value; }

int main(void) {
    omp_set_max_active_levels(3);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        int made = 1;
#pragma omp parallel num_threads(1) firstprivate(made)
        {
            int own = made;
#pragma omp task firstprivate(own)
            {
                int mine = own;
                note(&mine, mine + 1);
                note(&results[0], mine);
            }
            note(&own, 3);
        }
#pragma omp parallel num_threads(2) firstprivate(made)
        {
            int own = made + omp_get_thread_num();
#pragma omp for schedule(static)
            for (int i = 0; i < 2; i++) {
                note(&own, own + 1);
            }
            note(&results[1 + omp_get_thread_num()], own);
        }
#pragma omp parallel num_threads(1) firstprivate(made)
        {
            int own = made;
#pragma omp for schedule(static)
            for (int i = 0; i < 2; i++) {
                note(&own, own + 1);
            }
            note(&results[3], own);
        }
    }
    return results[3] != 3 || results[0] != 2 || results[1] != 2 || results[2] != 3;
}
