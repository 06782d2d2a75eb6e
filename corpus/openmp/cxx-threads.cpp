// expect: race
// Two std::threads without OpenMP.
#include <cstdio>
#include <vector>
#include <omp.h>

#include <thread>
int x;

int main() {
    std::thread one([] { x = 1; }), two([] { x = 2; });
    one.join();
    two.join();
    return 0;
}
