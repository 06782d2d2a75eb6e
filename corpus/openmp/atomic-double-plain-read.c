// expect: race
// An atomic update of a double, and a plain read.

double total = 1;

int main(void) {
    double seen = 0;
#pragma omp parallel
    {
#pragma omp atomic
        total += 1.5;
#pragma omp master
        seen = total;
    }
    return seen < 0;
}
