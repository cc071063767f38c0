/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary made for tests: the 256 bytes (id = byte), then one piece for each merge, then special tokens.
 * Small enough to know every id by heart, and it needs no file. */
#ifndef FK_TESTS_TINY_VOCABULARY_H
#define FK_TESTS_TINY_VOCABULARY_H

#include "text/byte_map.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <string.h>

enum { TINY_MAX_PIECES = 512 };

typedef struct tiny_vocabulary {
    char text[TINY_MAX_PIECES][64];
    fk_piece pieces[TINY_MAX_PIECES];
    int32_t types[TINY_MAX_PIECES];
    fk_merge_rule merges[TINY_MAX_PIECES];
    fk_tokenizer_spec spec;
} tiny_vocabulary;

static inline int32_t tiny_add_piece(tiny_vocabulary *v, const char *text, size_t bytes, int32_t type)
{
    int32_t id = (int32_t)v->spec.vocab_size++;
    memcpy(v->text[id], text, bytes);
    v->pieces[id] = (fk_piece){v->text[id], bytes};
    v->types[id] = type;
    return id;
}

static inline void tiny_init(tiny_vocabulary *v, const char *pre)
{
    memset(v, 0, sizeof *v);
    v->spec = (fk_tokenizer_spec){
        .pre = pre, .pieces = v->pieces, .types = v->types, .merges = v->merges, .bos_id = -1};
    for (int byte = 0; byte < 256; byte++) {
        uint8_t name[4];
        int bytes = fkp_utf8_write(fkp_byte_to_code_point((uint8_t)byte), name);
        tiny_add_piece(v, (const char *)name, (size_t)bytes, FK_TOKEN_NORMAL);
    }
}

/* Adds the merge "left right" and, unless it is there, its piece; returns the id of the piece. `line` must
 * live on. */
static inline int32_t tiny_add_merge(tiny_vocabulary *v, const char *line)
{
    fk_merge_rule *rule = &v->merges[v->spec.num_merges++];
    if (fk_merge_rule_parse(fk_piece_of(line), rule) != FK_OK) return -1;
    char joined[64];
    memcpy(joined, rule->left.data, rule->left.bytes);
    memcpy(joined + rule->left.bytes, rule->right.data, rule->right.bytes);
    size_t bytes = rule->left.bytes + rule->right.bytes;
    for (int32_t id = 0; id < v->spec.vocab_size; id++)
        if (v->pieces[id].bytes == bytes && memcmp(v->pieces[id].data, joined, bytes) == 0) return id;
    return tiny_add_piece(v, joined, bytes, FK_TOKEN_NORMAL);
}

static inline int32_t tiny_add_special(tiny_vocabulary *v, const char *name, int32_t type)
{
    return tiny_add_piece(v, name, strlen(name), type);
}

#endif
