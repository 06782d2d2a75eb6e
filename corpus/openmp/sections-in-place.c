// expect: race-free
// Each section updates a variable of its own. An optimiser would like to load both before it knows which section it is.
#include <stdio.h>

int counts[2];

int main(void) {
#pragma omp parallel
#pragma omp sections
    {
#pragma omp section
        counts[0] += 1;
#pragma omp section
        counts[1] += 1;
    }
    printf("%d %d\n", counts[0], counts[1]);
    return 0;
}
