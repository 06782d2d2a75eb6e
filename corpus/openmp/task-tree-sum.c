// expect: race-free
// A sum over a tree, with tasks.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

struct node { struct node *left, *right; int value, sum; };

static struct node *grow(int depth) {
    struct node *node = calloc(1, sizeof *node);
    node->value = depth;
    if (depth > 0) {
        node->left = grow(depth - 1);
        node->right = grow(depth - 1);
    }
    return node;
}

static void add(struct node *node) {
    if (!node)
        return;
#pragma omp task
    add(node->left);
#pragma omp task
    add(node->right);
#pragma omp taskwait
    node->sum = node->value + (node->left ? node->left->sum + node->right->sum : 0);
}

int main(void) {
    struct node *root = grow(5);
#pragma omp parallel
#pragma omp single
    add(root);
    return root->sum != 57;
}
