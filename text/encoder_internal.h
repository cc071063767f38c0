/* SPDX-License-Identifier: Apache-2.0 */
/* What encoding writes to, shared by the way of GGUF vocabularies (encoder.c) and that of tokenizer.json
 * (encoder_pipeline.c). */
#ifndef FK_TEXT_ENCODER_INTERNAL_H
#define FK_TEXT_ENCODER_INTERNAL_H

#include "text/pipeline.h"
#include "text/tokenizer_internal.h"

/* One word of the cache and its ids; a word of another slot's hash simply replaces it. 64 bytes, a cache
 * line. */
enum { CACHED_BYTES = 30, CACHED_IDS = 8, CACHE_SLOTS = 1 << 14 };
typedef struct cached_word {
    uint8_t bytes; /* 0: free */
    uint8_t count;
    uint8_t word[CACHED_BYTES];
    int32_t ids[CACHED_IDS];
} cached_word;

/* A stretch of the text: a special token, or text still to be encoded (id < 0). */
typedef struct fragment {
    size_t begin, end;
    int32_t id;
} fragment;

typedef struct fragment_list {
    fragment *items;
    size_t count, capacity;
} fragment_list;

struct fk_encoder {
    const fk_tokenizer *t;
    cached_word *cache; /* [CACHE_SLOTS] */
    fkp_bpe_scratch bpe;
    fk_bytes text;     /* joined spans, or a text that had to be made UTF-8 */
    fk_bytes name;     /* a word in the byte map */
    size_t *span_ends; /* [number of spans] offsets in the joined text */
    size_t span_ends_capacity;
    fragment_list fragments, previous;
    bool *pattern_seen; /* [num_special] */
    bool *node_seen;    /* [matcher nodes] */
    /* tokenizer.json only */
    fkp_normalizer_scratch normal;
    fkp_split_scratch split;
    int32_t *symbols;
    size_t symbols_capacity;
    fkp_unigram_step *steps;
    size_t steps_capacity;
};

/* The text of one call, with where control tokens may stand. */
typedef struct encode_input {
    const char *text;
    size_t bytes;
    const fk_text_span *spans;
    size_t num_spans;
    bool any_special; /* some span allows control tokens */
} encode_input;

/* Whether [begin, end) of the input lies within one span that allows control tokens. */
bool fkp_control_allowed(const fk_encoder *e, const encode_input *in, size_t begin, size_t end);
fk_status fkp_add_fragment(fragment_list *list, fragment f);
/* The ids of one word, through the cache. */
fk_status fkp_encode_word(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out);
/* What the WordPiece model makes of one word. */
fk_status fkp_wordpiece_encode(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out);
/* The whole input as tokenizer.json says, without what the post-processor adds. */
fk_status fkp_pipeline_encode(fk_encoder *e, const encode_input *in, fk_token_list *out);

#endif
