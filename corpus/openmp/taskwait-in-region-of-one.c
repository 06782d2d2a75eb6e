// expect: race
// A taskwait in a region of one thread does not wait for the children of the task that has come to the region.
#include <stdlib.h>

int outer, inner;

int main(void) {
    int seen = 0;
#pragma omp parallel shared(seen)
#pragma omp single
    {
#pragma omp task shared(outer)
        outer = 1;
#pragma omp parallel num_threads(1) shared(seen)
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
