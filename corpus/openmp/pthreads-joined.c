// expect: race-free
// Plain threads, joined before the result is read.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

#include <pthread.h>
static int x[2];

static void *work(void *p) {
    *(int *)p = 1;
    return NULL;
}

int main(void) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, work, &x[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return x[0] + x[1] != 2;
}
