// expect: race
// What two sections do before one of them cancels them is parallel.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

// Before anything of OpenMP asks for it.
__attribute__((constructor)) static void turn_on(void) { setenv("OMP_CANCELLATION", "true", 1); }

int a;

int main(void) {
#pragma omp parallel sections
    {
#pragma omp section
        {
            a = 1;
#pragma omp cancel sections
        }
#pragma omp section
        {
            a = 2;
#pragma omp cancellation point sections
        }
    }
    return a == 0;
}
