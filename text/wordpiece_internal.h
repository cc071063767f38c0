/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a WordPiece tokenizer, shared by the file that reads them (wordpiece_json.c) and the one that encodes
 * (wordpiece.c). */
#ifndef FK_TEXT_WORDPIECE_INTERNAL_H
#define FK_TEXT_WORDPIECE_INTERNAL_H

#include "text/bert_normalizer.h"
#include "text/string_matcher.h"
#include "text/wordpiece.h"

typedef struct fkp_added_token {
    int32_t id;
    size_t bytes; /* of its text */
} fkp_added_token;

struct fk_wordpiece {
    fkp_bert_normalizer normalizer;
    fk_bytes text;      /* pieces one after the other */
    fk_piece *pieces;   /* [vocab_size], in `text` */
    int64_t vocab_size;
    uint32_t *slots; /* hash over pieces: id + 1, 0 when free; power of two, at most half full */
    size_t num_slots;
    size_t longest;   /* bytes of the longest piece */
    fk_bytes prefix;  /* of pieces that go on with a word: "##" */
    int64_t max_chars; /* longer words are unknown */
    int32_t unknown_id;
    fkp_string_matcher added_matcher; /* pattern i is added[i] */
    fkp_added_token *added;
    size_t num_added;
    fk_token_list before, after; /* what the post-processor puts around a single text */
};

/* Builds `slots` and `longest` once `pieces` is filled; equal pieces are an error. */
fk_status fkp_wordpiece_index(fk_wordpiece *w);

#endif
