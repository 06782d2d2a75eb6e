// expect: race-free
// Elements of a vector.
#include <cstdio>
#include <vector>
#include <omp.h>

int main() {
    std::vector<int> v(500);
#pragma omp parallel for
    for (std::size_t i = 0; i < v.size(); i++)
        v[i] = int(i);
    return v[499] != 499;
}
