/* SPDX-License-Identifier: Apache-2.0 */
/* Many strings looked for at once in one pass over bytes (Aho-Corasick). The automaton is a trie with a
 * failure link a node, walked through child lists: small, built in linear time, and read-only once built, so
 * threads share it. */
#ifndef FK_TEXT_STRING_MATCHER_H
#define FK_TEXT_STRING_MATCHER_H

#include "text/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FKP_MATCHER_ROOT 0 /* the state before any byte */

typedef struct fkp_matcher_node {
    int32_t child;   /* first child, 0 when none (the root is nobody's child) */
    int32_t sibling; /* next child of the same parent, 0 at the end */
    int32_t failure; /* node of the longest proper suffix that is in the trie */
    int32_t pattern; /* index of the string that ends here, -1 when none */
    int32_t shorter; /* nearest node along the failure links where a string ends, 0 when none */
    int32_t depth;   /* bytes from the root: how much of the text may still grow into a match */
    uint8_t byte;    /* the byte on the way from the parent */
} fkp_matcher_node;

typedef struct fkp_string_matcher {
    fkp_matcher_node *nodes;
    size_t count;
    size_t capacity;
    int32_t root_child[256]; /* node for each first byte, 0 when no string begins with it */
} fkp_string_matcher;

/* Strings must not be empty; of equal ones the first is reported. */
fk_status fkp_string_matcher_init(fkp_string_matcher *m, const fk_piece *strings, size_t count);
void fkp_string_matcher_deinit(fkp_string_matcher *m);
/* The state after one more byte. */
int32_t fkp_string_matcher_step(const fkp_string_matcher *m, int32_t state, uint8_t byte);

#ifdef __cplusplus
}
#endif
#endif
