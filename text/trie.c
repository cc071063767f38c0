/* SPDX-License-Identifier: Apache-2.0 */
/* Building the trie level by level from the sorted strings: those below a node are a stretch of the list. */
#include "text/trie.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 24 }; /* XLM-R's 250,000 pieces have about a million */

typedef struct entry {
    fk_piece text;
    int32_t value;
} entry;

/* The strings below a node: sorted[begin, end), which agree in their first `depth` bytes. */
typedef struct stretch {
    size_t begin, end, depth;
} stretch;

static int by_bytes(const void *left, const void *right)
{
    const fk_piece *a = &((const entry *)left)->text, *b = &((const entry *)right)->text;
    int order = memcmp(a->data, b->data, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static fk_status add_node(fkp_trie *t, stretch **stretches, size_t *capacity, uint8_t byte, stretch below)
{
    if (t->count >= MOST_NODES)
        return fk_fail(FK_ERROR_UNSUPPORTED, "strings with more than %d different beginnings are not built",
                       MOST_NODES);
    void *nodes = t->nodes, *list = *stretches;
    FK_TRY(fkp_grow(&nodes, &t->capacity, t->count + 1, sizeof *t->nodes));
    t->nodes = nodes;
    FK_TRY(fkp_grow(&list, capacity, t->count + 1, sizeof **stretches));
    *stretches = list;
    t->nodes[t->count] = (fkp_trie_node){.value = -1, .byte = byte};
    (*stretches)[t->count++] = below;
    return FK_OK;
}

static fk_status build(fkp_trie *t, const entry *sorted, size_t count, stretch **stretches)
{
    size_t capacity = 0;
    FK_TRY(add_node(t, stretches, &capacity, 0, (stretch){0, count, 0}));
    for (size_t node = 0; node < t->count; node++) {
        stretch s = (*stretches)[node];
        while (s.begin < s.end && sorted[s.begin].text.bytes == s.depth)
            t->nodes[node].value = sorted[s.begin++].value;
        t->nodes[node].children = (int32_t)t->count;
        while (s.begin < s.end) {
            const uint8_t byte = (uint8_t)sorted[s.begin].text.data[s.depth];
            size_t end = s.begin + 1;
            while (end < s.end && (uint8_t)sorted[end].text.data[s.depth] == byte) end++;
            if (node == FKP_TRIE_ROOT) t->root_child[byte] = (int32_t)t->count;
            FK_TRY(add_node(t, stretches, &capacity, byte, (stretch){s.begin, end, s.depth + 1}));
            t->nodes[node].count++;
            s.begin = end;
        }
    }
    return FK_OK;
}

fk_status fkp_trie_init(fkp_trie *t, const fk_piece *strings, const int32_t *values, size_t count)
{
    *t = (fkp_trie){0};
    for (int i = 0; i < 256; i++) t->root_child[i] = -1;
    if (count == 0) return FK_OK;
    stretch *stretches = NULL;
    entry *sorted = calloc(count, sizeof *sorted);
    if (!sorted) return fk_fail(FK_ERROR_MEMORY, "no memory for %zu strings", count);
    for (size_t i = 0; i < count; i++) sorted[i] = (entry){strings[i], values[i]};
    qsort(sorted, count, sizeof *sorted, by_bytes);
    fk_status status = build(t, sorted, count, &stretches);
    free(sorted);
    free(stretches);
    if (status != FK_OK) fkp_trie_deinit(t);
    return status;
}

void fkp_trie_deinit(fkp_trie *t)
{
    free(t->nodes);
    *t = (fkp_trie){0};
}
