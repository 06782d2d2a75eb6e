// expect: race
// The chunks of a distributed loop are parallel.

int last, all[100];

int main(void) {
#pragma omp target teams distribute parallel for schedule(dynamic, 3) map(tofrom : all, last)
    for (int i = 0; i < 100; i++)
        all[i] = last = i;
    return all[7] != 7;
}
