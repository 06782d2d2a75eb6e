// expect: race-free
// std::mutex beside OpenMP.
#include <cstdio>
#include <vector>
#include <omp.h>

#include <mutex>
std::mutex mutex;
int count;

int main() {
#pragma omp parallel
    {
        std::lock_guard<std::mutex> guard(mutex);
        count++;
    }
    return count < 2;
}
