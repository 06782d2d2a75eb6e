// expect: race-free
// Several reductions in one loop.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

int main(void) {
    int sum = 0, most = 0;
    double product = 1;
#pragma omp parallel for reduction(+ : sum) reduction(max : most) reduction(* : product)
    for (int i = 1; i < 20; i++) {
        sum += i;
        most = i > most ? i : most;
        product *= 1.5;
    }
    return sum != 190 || most != 19;
}
