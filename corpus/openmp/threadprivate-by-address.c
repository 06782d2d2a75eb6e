// expect: race
// A thread writes the variable of another, which has given its address away, and that one writes it by its name.
#include <stdio.h>
#include <omp.h>

int own, *of_first;
#pragma omp threadprivate(own)

int main(void) {
    of_first = &own;
#pragma omp parallel
    if (omp_get_thread_num() == 0)
        own = 5;
    else if (omp_get_thread_num() == 1)
        *of_first = 6;
    printf("%d\n", own);
    return 0;
}
