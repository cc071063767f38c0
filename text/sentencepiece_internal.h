/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary of scored pieces as its files hold it: read by sentencepiece_model.c and tokenizer_gguf.c,
 * made a tokenizer by sentencepiece.c. */
#ifndef FK_TEXT_SENTENCEPIECE_INTERNAL_H
#define FK_TEXT_SENTENCEPIECE_INTERNAL_H

#include "text/sentencepiece.h"

/* Numbered as in SentencePiece's model.proto, and as tokenizer.ggml.token_type. */
typedef enum fkp_piece_type {
    FKP_PIECE_NORMAL = 1,
    FKP_PIECE_UNKNOWN = 2,
    FKP_PIECE_CONTROL = 3,
    FKP_PIECE_USER_DEFINED = 4,
    FKP_PIECE_UNUSED = 5,
    FKP_PIECE_BYTE = 6
} fkp_piece_type;

/* Everything is borrowed. */
typedef struct fkp_scored_vocabulary {
    const fk_piece *pieces; /* [size] */
    const double *scores;   /* [size], finite */
    const int32_t *types;   /* [size] fkp_piece_type */
    int64_t size;
    bool unigram; /* else BPE */
    bool gguf;    /* as llama.cpp does: user-defined pieces are added tokens, unused ones are pieces, unknown
                     ones are control tokens */
    bool byte_fallback, add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_suffix;
    fk_piece charsmap, unknown_surface;
    int32_t bos_id; /* -1: none */
    const int32_t *eos_ids;
    int64_t num_eos_ids;
    bool add_bos, add_eos;
} fkp_scored_vocabulary;

fk_status fkp_tokenizer_create_scored(const fkp_scored_vocabulary *v, fk_tokenizer **out);

#endif
