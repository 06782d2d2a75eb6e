// expect: race
// What the tasks take part in is reduced, and nothing else.

int count;

int main(void) {
    int sum = 0;
#pragma omp parallel reduction(task, + : sum)
#pragma omp single
    for (int i = 0; i < 10; i++) {
#pragma omp task in_reduction(+ : sum)
        {
            sum += i;
            count++;
        }
    }
    return sum != 45;
}
