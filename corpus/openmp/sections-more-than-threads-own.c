// expect: race-free
// Each section writes something else; what is private, reduced or last is each thread's own.

int x, y[4];

int main(void) {
    int sum = 0, last = 0;
#pragma omp parallel num_threads(2)
#pragma omp sections reduction(+ : sum) lastprivate(last)
    {
#pragma omp section
        x = sum += 1, last = 1;
#pragma omp section
        y[1] = sum += 2, last = 2;
#pragma omp section
        y[2] = sum += 3, last = 3;
#pragma omp section
        y[3] = sum += 4, last = 4;
    }
    return sum != 10 || last != 4;
}
