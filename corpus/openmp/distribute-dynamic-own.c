// expect: race-free
// Each iteration of a distributed loop has an element of its own.

int all[100];

int main(void) {
#pragma omp teams
#pragma omp distribute parallel for dist_schedule(static, 10) schedule(guided)
    for (int i = 0; i < 100; i++)
        all[i] = i;
    return all[7] != 7;
}
