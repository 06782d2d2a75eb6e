// expect: race
// Tasks copy texts to the same place, in the C library.
#include <stdio.h>
#include <string.h>

char place[32];

int main(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        strcpy(place, "one");
#pragma omp task
        strcpy(place, "other");
    }
    puts("done");
    return 0;
}
