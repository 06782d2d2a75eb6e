// expect: race-free
// Each iteration prints, copies, compares and sorts in a row of its own, and reads one text of all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char rows[16][64];
int numbers[16][8];
const char *given = "a text";

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
    int wrong = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : wrong)
    for (int i = 0; i < 16; i++) {
        snprintf(rows[i], sizeof rows[i], "%d ", i);
        strcat(rows[i], given);
        char *copy = strdup(rows[i]);
        wrong += strcmp(copy, rows[i]) != 0 || atoi(copy) != i || strlen(copy) < 8 || !strchr(copy, 'x');
        free(copy);
        for (int k = 0; k < 8; k++)
            numbers[i][k] = i * k % 5;
        qsort(numbers[i], 8, sizeof(int), compare);
        wrong += numbers[i][0] != 0;
    }
    printf("%d\n", wrong);
    return wrong;
}
