/* SPDX-License-Identifier: Apache-2.0 */
/* A set of strings read byte by byte from a place in a text: which of them begin here. Children of a node
 * stand side by side in the order of their bytes. */
#ifndef FK_TEXT_TRIE_H
#define FK_TEXT_TRIE_H

#include "text/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FKP_TRIE_ROOT 0

typedef struct fkp_trie_node {
    int32_t value;    /* of the string that ends here, -1 when none does */
    int32_t children; /* the first of them */
    uint16_t count;   /* of children */
    uint8_t byte;     /* on the way from the parent */
} fkp_trie_node;

typedef struct fkp_trie {
    fkp_trie_node *nodes; /* NULL: no strings */
    size_t count, capacity;
    int32_t root_child[256]; /* -1: no string begins so */
} fkp_trie;

/* Strings are not empty, values not negative; of equal strings one is kept. */
fk_status fkp_trie_init(fkp_trie *t, const fk_piece *strings, const int32_t *values, size_t count);
void fkp_trie_deinit(fkp_trie *t);

/* -1 when the node has no such child. */
static inline int32_t fkp_trie_child(const fkp_trie *t, int32_t node, uint8_t byte)
{
    if (node == FKP_TRIE_ROOT) return t->root_child[byte];
    const fkp_trie_node *n = &t->nodes[node];
    int32_t low = n->children, high = low + n->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (t->nodes[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->children + n->count && t->nodes[low].byte == byte ? low : -1;
}

/* The longest string that the text begins with: its value, and its length in *length; -1 when there is none.
 */
static inline int32_t fkp_trie_longest(const fkp_trie *t, const uint8_t *text, size_t bytes, size_t *length)
{
    int32_t value = -1, node = FKP_TRIE_ROOT;
    for (size_t i = 0; t->nodes && i < bytes && (node = fkp_trie_child(t, node, text[i])) >= 0; i++) {
        if (t->nodes[node].value < 0) continue;
        value = t->nodes[node].value;
        *length = i + 1;
    }
    return value;
}

#ifdef __cplusplus
}
#endif
#endif
