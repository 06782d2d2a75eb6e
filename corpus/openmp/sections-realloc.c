// expect: race
// One section makes a block larger, the other writes to where it was.
#include <stdio.h>
#include <stdlib.h>

int *block;

int main(void) {
    block = malloc(4000);
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            int *larger = realloc(block, 4100);
            larger[1] = 2;
        }
#pragma omp section
        block[0] = 2;
    }
    puts("done");
    return 0;
}
