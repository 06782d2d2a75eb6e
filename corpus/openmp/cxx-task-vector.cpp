// expect: race
// Tasks change the same vector.
#include <cstdio>
#include <vector>
#include <omp.h>

int main() {
    std::vector<int> v(4);
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 4; i++) {
#pragma omp task shared(v)
        v[i / 2]++;
    }
    return 0;
}
