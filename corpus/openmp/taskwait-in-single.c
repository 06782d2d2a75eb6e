// expect: race
// A taskwait in a single waits for the tasks of whoever runs it, which may be another thread.
#include <omp.h>
#include <stdlib.h>

int first, second;

int main(void) {
    int seen = 0;
#pragma omp parallel shared(seen)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task shared(first)
            first = 1;
        }
#pragma omp single nowait
        {
#pragma omp task shared(second)
            second = 1;
#pragma omp taskwait
        }
        if (omp_get_thread_num() == 0) {
            seen = first;
        }
    }
    return seen > 1 ? EXIT_FAILURE : EXIT_SUCCESS;
}
