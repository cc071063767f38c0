/* SPDX-License-Identifier: Apache-2.0 */
/* The 20,000 lines on which tokenizers are compared with their references: made from the fragments of
 * goldens/tokenizer_fragments.txt by the rule that tools/reference/tokenizer_lines.py states. */
#ifndef FK_TESTS_TOKENIZER_LINES_H
#define FK_TESTS_TOKENIZER_LINES_H

#include "text/buffer.h"

enum { MAX_FRAGMENTS = 4096, LINES = 20000 };

typedef struct fragment_set {
    fk_bytes text;
    size_t ends[MAX_FRAGMENTS];
    size_t count;
} fragment_set;

/* FNV-1a over the ids as little-endian int32. */
uint32_t hash_ids(const fk_token_list *ids);
/* \n, \t and \xHH of the golden text files to bytes. */
void append_unescaped(fk_bytes *out, const char *text, size_t bytes);
/* Calls `use` for each line of the file that is neither empty nor a comment. */
void for_each_line(const char *path, void (*use)(void *context, char *line), void *context);
/* A `use` of for_each_line that fills a fragment_set. */
void add_fragment(void *set, char *line);
/* Line n of the corpus, in place of what `out` held. */
void make_line(fk_bytes *out, const fragment_set *set, size_t n);

#endif
