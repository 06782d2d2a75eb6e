// expect: race
// A target region with nowait is parallel to what follows.

int a;

int main(void) {
#pragma omp target map(tofrom : a) nowait
    a = 1;
    a = 2;
#pragma omp taskwait
    return a < 1;
}
