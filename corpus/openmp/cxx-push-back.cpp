// expect: race
// All threads append to one vector.
#include <cstdio>
#include <vector>
#include <omp.h>

int main() {
    std::vector<int> v;
#pragma omp parallel num_threads(2)
    v.push_back(omp_get_thread_num());
    return 0;
}
