/* SPDX-License-Identifier: Apache-2.0 */
/* The 20,000 lines on which tokenizers are compared with their references: made from the fragments of
 * goldens/tokenizer_fragments.txt by the rule that tools/reference/tokenizer_lines.py states; and the comparison. */
#ifndef FK_TESTS_TOKENIZER_LINES_H
#define FK_TESTS_TOKENIZER_LINES_H

#include "text/buffer.h"

enum { MAX_FRAGMENTS = 4096, LINES = 20000, CODE_POINT_BLOCKS = 0x1100 };

typedef struct fragment_set {
    fk_bytes text;
    size_t ends[MAX_FRAGMENTS];
    size_t count;
} fragment_set;

/* \n, \t and \xHH of the golden text files to bytes. */
void append_unescaped(fk_bytes *out, const char *text, size_t bytes);
/* Calls `use` for each line of the file that is neither empty nor a comment. */
void for_each_line(const char *path, void (*use)(void *context, char *line), void *context);
/* A `use` of for_each_line that fills a fragment_set. */
void add_fragment(void *set, char *line);
/* Line n of the corpus, in place of what `out` held. */
void make_line(fk_bytes *out, const fragment_set *set, size_t n);

/* Every code point of 256 block .. 256 block + 255 but surrogates, between a space and a letter. */
void make_block(fk_bytes *out, uint32_t block);

/* The tokenizer under test: the ids of a text to the end of a list. */
typedef void (*encode_fn)(const fk_bytes *text, fk_token_list *ids);
/* The ids of every line have the golden's counts and hashes, [LINES]. Returns how many ids there are. */
int64_t check_lines(encode_fn encode, const int32_t *counts, const uint32_t *hashes);
/* The same of every code point between a space and a letter, which shows how it is classed; 256 of them are one text. */
void check_code_points(encode_fn encode, const uint32_t hashes[CODE_POINT_BLOCKS]);

#endif
