// expect: race
// Readers of a read-write lock write: they do not exclude each other.
#include <pthread.h>
#include <stdio.h>

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int count;

int main(void) {
#pragma omp parallel
    {
        pthread_rwlock_rdlock(&lock);
        count++;
        pthread_rwlock_unlock(&lock);
    }
    puts("done");
    return 0;
}
