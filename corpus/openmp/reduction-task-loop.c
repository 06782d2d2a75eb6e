// expect: race-free
// Tasks of a loop take part in its reduction, and so does the loop itself.

int main(void) {
    int sum = 0;
#pragma omp parallel
#pragma omp for reduction(task, + : sum)
    for (int i = 0; i < 10; i++) {
#pragma omp task in_reduction(+ : sum)
        sum += i;
        sum += 1;
    }
    return sum != 55;
}
