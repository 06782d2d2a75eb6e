// expect: race
// A taskwait of an undeferred task waits for its own children, and not for those of the task that it is part of.
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
            seen = inner + outer;
        }
#pragma omp taskwait
    }
    return seen > 2 ? EXIT_FAILURE : EXIT_SUCCESS;
}
