// expect: race-free
// A target region with nowait is a task, for which a taskwait waits.

int a, b;

int main(void) {
#pragma omp target map(tofrom : a) nowait
    a = 1;
#pragma omp target map(tofrom : b) nowait
    b = 1;
#pragma omp taskwait
    return a + b != 2;
}
