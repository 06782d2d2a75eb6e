// expect: race-free
// An undeferred task waits for its own children; the task that it is part of waits for its own later.
#include <stdlib.h>

int outer, inner;

int main(void) {
    int seen = 0;
#pragma omp parallel shared(seen)
#pragma omp single
    {
#pragma omp task shared(outer)
        outer = 1;
#pragma omp task if (0) shared(seen)
        {
#pragma omp task shared(inner)
            inner = 1;
#pragma omp taskwait
            seen = inner;
        }
#pragma omp taskwait
        seen += outer;
    }
    return seen == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
