// expect: race-free
// A taskwait in a taskgroup waits for all children of the task, also for those from before the group.
#include <stdlib.h>

int before, within;

int main(void) {
    int seen = 0;
#pragma omp parallel shared(seen)
#pragma omp single
    {
#pragma omp task shared(before)
        before = 1;
#pragma omp taskgroup
        {
#pragma omp task shared(within)
            within = 1;
#pragma omp taskwait
            seen = before + within;
        }
    }
    return seen == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
