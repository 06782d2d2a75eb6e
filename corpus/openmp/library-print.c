// expect: race
// All iterations print to one buffer.
#include <stdio.h>

char buffer[32];

int main(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 8; i++)
        snprintf(buffer, sizeof buffer, "%d", i);
    puts("done");
    return 0;
}
