// expect: race-free
// Atomic updates and an atomic read of what has no atomic instruction.

long double total = 1;

int main(void) {
    double seen = 0;
#pragma omp parallel
    {
#pragma omp atomic
        total += 1.5;
#pragma omp atomic
        total *= 2;
    }
    return total < seen;
}
