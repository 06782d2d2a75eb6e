// expect: race-free
// Tasks take part in the reduction of their region.

int main(void) {
    int sum = 0;
#pragma omp parallel reduction(task, + : sum)
#pragma omp single
    for (int i = 0; i < 10; i++) {
#pragma omp task in_reduction(+ : sum)
        sum += i;
    }
    return sum != 45;
}
