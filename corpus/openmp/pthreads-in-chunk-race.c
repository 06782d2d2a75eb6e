// expect: race
// A chunk uses its block while a thread does that it has started.
#include <pthread.h>
#include <stdlib.h>

int sum;

void *work(void *argument) {
    int *number = argument;
    *number += 1;
    return argument;
}

int main(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 8; i++) {
        int *number = malloc(sizeof *number);
        *number = i;
        pthread_t thread;
        pthread_create(&thread, NULL, work, number);
        *number += 1;
        pthread_join(thread, NULL);
#pragma omp atomic
        sum += *number;
        free(number);
    }
    return sum < 36;
}
