// expect: race
// An atomic update of what has no atomic instruction, and a plain read.

long double total = 1;

int main(void) {
    double seen = 0;
#pragma omp parallel
    {
#pragma omp atomic
        total += 1.5;
#pragma omp master
        seen = (double)total;
    }
    return seen < 0;
}
