// expect: race-free
// lastprivate has the value of the last iteration.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int last = 0;
#pragma omp parallel for lastprivate(last) schedule(dynamic)
    for (int i = 0; i < 50; i++)
        last = i;
    return last != 49;
}
