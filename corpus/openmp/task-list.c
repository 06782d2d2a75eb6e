// expect: race-free
// A task for each node of a list.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

struct node { struct node *next; int value; };

int main(void) {
    struct node *head = NULL;
    for (int i = 0; i < 50; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = head;
        node->value = i;
        head = node;
    }
#pragma omp parallel
#pragma omp single
    for (struct node *node = head; node; node = node->next) {
#pragma omp task firstprivate(node)
        node->value *= 2;
    }
    return head->value != 98;
}
