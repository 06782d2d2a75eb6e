// expect: race-free
// The end of a group in between does not wait for the task, but the critical section does.
int x;

int main(void) {
#pragma omp parallel
#pragma omp critical
    {
#pragma omp task
        x++;
#pragma omp taskgroup
        {
            int own = 0;
#pragma omp task firstprivate(own)
            own++;
        }
#pragma omp taskwait
    }
    return 0;
}
