// expect: race-free
// They do so under a critical section.
#include <cstdio>
#include <vector>
#include <omp.h>

int main() {
    std::vector<int> v;
#pragma omp parallel
#pragma omp critical
    v.push_back(omp_get_thread_num());
    return v.size() < 2;
}
