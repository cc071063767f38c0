/* SPDX-License-Identifier: Apache-2.0 */
/* Pre-tokenizers of tokenizer.json: a list of steps, each of which cuts the stretches of the step before further, and
 * may rewrite their text (a space becomes U+2581, a byte its character of the byte map). */
#ifndef FK_TEXT_WORD_SPLITTER_H
#define FK_TEXT_WORD_SPLITTER_H

#include "text/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of the matches of a pattern, by the names of tokenizer.json. */
typedef enum fkp_split_behavior {
    FKP_SPLIT_REMOVED,
    FKP_SPLIT_ISOLATED,
    FKP_SPLIT_MERGED_WITH_PREVIOUS,
    FKP_SPLIT_MERGED_WITH_NEXT,
    FKP_SPLIT_CONTIGUOUS
} fkp_split_behavior;

typedef enum fkp_prepend_scheme { FKP_PREPEND_ALWAYS, FKP_PREPEND_FIRST, FKP_PREPEND_NEVER } fkp_prepend_scheme;

typedef enum fkp_split_kind {
    FKP_SPLIT_PATTERN,   /* cuts by a pattern */
    FKP_SPLIT_METASPACE, /* writes spaces as `content` and may put one in front */
    FKP_SPLIT_PREFIX,    /* a space in front of every stretch that has none */
    FKP_SPLIT_BYTE_MAP,  /* every byte as its character of the byte map */
    FKP_SPLIT_LENGTH     /* every `length` characters */
} fkp_split_kind;

typedef struct fkp_split_step {
    fkp_split_kind kind;
    fkp_pattern pattern;
    fkp_split_behavior behavior;
    bool invert; /* what does not match is the match */
    fkp_prepend_scheme scheme;
    fk_bytes content;
    int64_t length;
} fkp_split_step;

typedef struct fkp_word_splitter {
    fkp_split_step *steps;
    size_t count, capacity;
    fkp_scanner only; /* all that the steps do is cut by this scanner that matches everywhere; else NULL */
} fkp_word_splitter;

/* One step of this kind, at the end of the list, to be filled in. */
fk_status fkp_split_add(fkp_word_splitter *w, fkp_split_kind kind, fkp_split_step **out);
/* Once all steps are there: joins those that one scanner does. */
void fkp_word_splitter_finish(fkp_word_splitter *w);
void fkp_word_splitter_deinit(fkp_word_splitter *w);

typedef struct fkp_range_list {
    fkp_range *items;
    size_t count, capacity;
} fkp_range_list;

/* Working memory of one thread; starts as {0}. */
typedef struct fkp_split_scratch {
    fk_bytes buffers[2];
    fkp_range_list lists[2];
} fkp_split_scratch;

void fkp_split_scratch_deinit(fkp_split_scratch *s);

/* The words of a text: ranges of *words_text, none empty, in the scratch until the next call. `first`: the text stands
 * at the very beginning of what was given to the tokenizer. */
fk_status fkp_split_words(const fkp_word_splitter *w, fkp_split_scratch *s, fk_piece text, bool first, fk_piece *words_text,
                          const fkp_range_list **words);

/* Scanners for the named pre-tokenizers: one character, or a run, of each. */
extern const fkp_scanner fkp_scan_digit, fkp_scan_digits, fkp_scan_punctuation, fkp_scan_space, fkp_scan_spaces, fkp_scan_word_or_other;
/* Whether the character at pos belongs to \w. */
bool fkp_is_word_at(const uint8_t *text, size_t pos, size_t end);

#ifdef __cplusplus
}
#endif
#endif
