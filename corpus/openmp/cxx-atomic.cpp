// expect: race-free
// std::atomic beside OpenMP.
#include <cstdio>
#include <vector>
#include <omp.h>

#include <atomic>
std::atomic<int> count;

int main() {
#pragma omp parallel
    count++;
    return count < 2;
}
