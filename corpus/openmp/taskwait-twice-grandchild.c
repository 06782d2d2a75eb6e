// expect: race
// The second taskwait waits for its child, and not for the grandchild that the first has left.
#include <stdlib.h>

int grand, child;

int main(void) {
    int seen = 0;
#pragma omp parallel shared(seen)
#pragma omp single
    {
#pragma omp task
        {
#pragma omp task shared(grand)
            grand = 1;
        }
#pragma omp taskwait
#pragma omp task shared(child)
        child = 1;
#pragma omp taskwait
        seen = child + grand;
    }
    return seen > 2 ? EXIT_FAILURE : EXIT_SUCCESS;
}
