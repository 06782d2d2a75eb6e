// expect: race-free
// A reduction of one's own.
#include <cstdio>
#include <vector>
#include <omp.h>

struct Sum { int value = 0; };
#pragma omp declare reduction(add : Sum : omp_out.value += omp_in.value)

int main() {
    Sum sum;
#pragma omp parallel for reduction(add : sum)
    for (int i = 0; i < 100; i++)
        sum.value += i;
    return sum.value != 4950;
}
