// expect: race
// One of two threads forgets the mutex.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

#include <pthread.h>
static int x;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *locked(void *p) {
    pthread_mutex_lock(&mutex);
    x++;
    pthread_mutex_unlock(&mutex);
    return p;
}

static void *unlocked(void *p) {
    x++;
    return p;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, locked, NULL);
    pthread_create(&two, NULL, unlocked, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
