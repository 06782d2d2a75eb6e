// expect: race
// A task that is part of a critical section is not kept apart from what its creator does there before it waits.
int x;

int main(void) {
#pragma omp parallel
#pragma omp critical
    {
#pragma omp task
        x++;
        x++;
#pragma omp taskwait
    }
    return 0;
}
