// expect: race-free
// An exception is thrown and caught inside of a region.
#include <cstdio>
#include <vector>
#include <omp.h>

int caught[1024];

int main() {
#pragma omp parallel
    {
        try {
            throw omp_get_thread_num();
        } catch (int number) {
            caught[number] = 1;
        }
    }
    return caught[0] != 1 || caught[1] != 1;
}
