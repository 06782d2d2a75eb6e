// expect: race-free
// A static variable of a function is initialised once.
#include <cstdio>
#include <vector>
#include <omp.h>

static int make() { return 7; }

static int value() {
    static const int once = make();
    return once;
}

int out[1024];

int main() {
#pragma omp parallel
    out[omp_get_thread_num()] = value();
    return out[0] != 7;
}
