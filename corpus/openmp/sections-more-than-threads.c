// expect: race
// One thread has got both sections that write x; another might have got one of them.

int x, y[4];

int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp sections
    {
#pragma omp section
        x = 1;
#pragma omp section
        x = 2;
#pragma omp section
        y[2] = 3;
#pragma omp section
        y[3] = 4;
    }
    return y[2] + y[3] != 7;
}
