/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers of tokenizer.json: what is done to the text between added tokens before it is cut into words. A list of
 * steps, each from one buffer into another, in linear time. */
#ifndef FK_TEXT_NORMALIZER_H
#define FK_TEXT_NORMALIZER_H

#include "text/bert_normalizer.h"
#include "text/charsmap.h"
#include "text/pattern.h"
#include "text/trie.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fkp_normalizer_kind {
    FKP_NORMALIZE_NFC,
    FKP_NORMALIZE_NFD,
    FKP_NORMALIZE_NFKC,
    FKP_NORMALIZE_NFKD,
    FKP_NORMALIZE_LOWERCASE,
    FKP_NORMALIZE_STRIP,         /* white space at the ends */
    FKP_NORMALIZE_STRIP_ACCENTS, /* every mark */
    FKP_NORMALIZE_REPLACE,
    FKP_NORMALIZE_PREPEND, /* before a text that is not empty */
    FKP_NORMALIZE_BERT,
    FKP_NORMALIZE_NMT,        /* control characters go, odd spaces become a space */
    FKP_NORMALIZE_BYTE_LEVEL, /* every byte as its character of the byte map */
    FKP_NORMALIZE_CHARSMAP,   /* Precompiled */
    FKP_NORMALIZE_SENTENCEPIECE
} fkp_normalizer_kind;

/* What SentencePiece does to a text before its model sees it; see normalizer_spec in its model.proto. */
typedef struct fkp_sentencepiece_rules {
    bool add_dummy_prefix;         /* a space before the text, or behind it: */
    bool whitespace_suffix;        /* spaces belong to the word before them */
    bool remove_extra_whitespaces; /* at the ends, and all but one between words */
    fk_bytes space;                /* what a space is written as, mostly U+2581 */
    const fkp_trie *user_defined;  /* symbols that are left as they are; borrowed */
} fkp_sentencepiece_rules;

typedef struct fkp_normalizer {
    fkp_normalizer_kind kind;
    bool left, right;         /* STRIP */
    fkp_pattern pattern;      /* REPLACE */
    fk_bytes content;         /* REPLACE, PREPEND */
    fkp_bert_normalizer bert; /* BERT */
    fkp_charsmap charsmap;    /* CHARSMAP, SENTENCEPIECE */
    fkp_sentencepiece_rules sentencepiece;
} fkp_normalizer;

typedef struct fkp_normalizer_list {
    fkp_normalizer *steps;
    size_t count, capacity;
    bool keeps_ascii; /* only NFC and its kin: ASCII text stays as it is */
} fkp_normalizer_list;

/* One step of this kind, at the end of the list, to be filled in. */
fk_status fkp_normalizer_add(fkp_normalizer_list *list, fkp_normalizer_kind kind, fkp_normalizer **out);
void fkp_normalizer_list_deinit(fkp_normalizer_list *list);

/* Working memory of one thread; starts as {0}. */
typedef struct fkp_normalizer_scratch {
    fk_bytes buffers[2];
    int32_t *code_points;
    size_t capacity;
    uint32_t *sorted; /* marks in canonical order */
    size_t sorted_capacity;
} fkp_normalizer_scratch;

void fkp_normalizer_scratch_deinit(fkp_normalizer_scratch *s);

/* *out is the normalized text, in the scratch until the next call, or the text itself when nothing changes. Bytes that
 * are no UTF-8 stay as they are. */
fk_status fkp_normalize(const fkp_normalizer_list *list, fkp_normalizer_scratch *s, fk_piece text, fk_piece *out);

/* The SENTENCEPIECE step alone. */
fk_status fkp_sentencepiece_normalize(const fkp_charsmap *map, const fkp_sentencepiece_rules *rules,
                                      fk_piece text, fk_bytes *out);

#ifdef __cplusplus
}
#endif
#endif
