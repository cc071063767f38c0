/* SPDX-License-Identifier: Apache-2.0 */
/* Aho-Corasick automaton (Aho and Corasick, 1975). */
#include "text/string_matcher.h"

#include <assert.h>
#include <stdlib.h>

static int32_t child_of(const fkp_string_matcher *m, int32_t node, uint8_t byte)
{
    if (node == FKP_MATCHER_ROOT) return m->root_child[byte];
    int32_t child = m->nodes[node].child;
    while (child && m->nodes[child].byte != byte) child = m->nodes[child].sibling;
    return child;
}

static fk_status add_node(fkp_string_matcher *m, int32_t parent, uint8_t byte, int32_t *out)
{
    if (m->count == INT32_MAX)
        return fk_fail(FK_ERROR_INVALID, "strings to look for have more than 2^31 bytes");
    void *storage = m->nodes;
    FK_TRY(fkp_grow(&storage, &m->capacity, m->count + 1, sizeof *m->nodes));
    m->nodes = storage;
    int32_t node = (int32_t)m->count++;
    m->nodes[node] = (fkp_matcher_node){.pattern = -1, .byte = byte};
    if (node == FKP_MATCHER_ROOT) return FK_OK;
    m->nodes[node].depth = m->nodes[parent].depth + 1;
    m->nodes[node].sibling = m->nodes[parent].child;
    m->nodes[parent].child = node;
    if (parent == FKP_MATCHER_ROOT) m->root_child[byte] = node;
    *out = node;
    return FK_OK;
}

/* Failure links breadth first: every link points to a shallower node, which is done by then. */
static fk_status link_failures(fkp_string_matcher *m)
{
    int32_t *queue = malloc(m->count * sizeof *queue);
    if (!queue) return fk_fail(FK_ERROR_MEMORY, "no memory for a matcher of %zu states", m->count);
    size_t head = 0, tail = 0;
    queue[tail++] = FKP_MATCHER_ROOT;
    while (head < tail) {
        int32_t parent = queue[head++];
        for (int32_t node = m->nodes[parent].child; node; node = m->nodes[node].sibling) {
            queue[tail++] = node;
            if (parent == FKP_MATCHER_ROOT) continue; /* its suffix is empty: failure = root */
            int32_t failure = fkp_string_matcher_step(m, m->nodes[parent].failure, m->nodes[node].byte);
            m->nodes[node].failure = failure;
            m->nodes[node].shorter = m->nodes[failure].pattern >= 0 ? failure : m->nodes[failure].shorter;
        }
    }
    free(queue);
    return FK_OK;
}

fk_status fkp_string_matcher_init(fkp_string_matcher *m, const fk_piece *strings, size_t count)
{
    *m = (fkp_string_matcher){0};
    int32_t node = FKP_MATCHER_ROOT;
    fk_status status = add_node(m, 0, 0, &node);
    for (size_t i = 0; i < count && status == FK_OK; i++) {
        assert(strings[i].bytes > 0);
        node = FKP_MATCHER_ROOT;
        for (size_t k = 0; k < strings[i].bytes && status == FK_OK; k++) {
            uint8_t byte = (uint8_t)strings[i].data[k];
            int32_t child = child_of(m, node, byte);
            if (!child) status = add_node(m, node, byte, &child);
            node = child;
        }
        if (status == FK_OK && m->nodes[node].pattern < 0) m->nodes[node].pattern = (int32_t)i;
    }
    if (status == FK_OK) status = link_failures(m);
    if (status != FK_OK) fkp_string_matcher_deinit(m);
    return status;
}

void fkp_string_matcher_deinit(fkp_string_matcher *m)
{
    free(m->nodes);
    *m = (fkp_string_matcher){0};
}

int32_t fkp_string_matcher_step(const fkp_string_matcher *m, int32_t state, uint8_t byte)
{
    while (state != FKP_MATCHER_ROOT) {
        int32_t child = child_of(m, state, byte);
        if (child) return child;
        state = m->nodes[state].failure;
    }
    return m->root_child[byte];
}
