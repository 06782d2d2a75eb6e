// expect: race-free
// Readers of a read-write lock read, and one writes as a writer.
#include <pthread.h>
#include <omp.h>
#include <stdio.h>

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int count, seen[64];

int main(void) {
#pragma omp parallel
    {
        int thread = omp_get_thread_num();
        for (int i = 0; i < 10; i++) {
            if (thread == 1) {
                pthread_rwlock_wrlock(&lock);
                count++;
                pthread_rwlock_unlock(&lock);
            }
            pthread_rwlock_rdlock(&lock);
            seen[thread] += count;
            pthread_rwlock_unlock(&lock);
        }
    }
    printf("%d\n", count);
    return 0;
}
