// expect: race-free
// A thread_local variable is one for each thread.
#include <cstdio>
#include <vector>
#include <omp.h>

thread_local int own;

int main() {
#pragma omp parallel
    for (int i = 0; i < 10; i++)
        own++;
    return own != 10;
}
