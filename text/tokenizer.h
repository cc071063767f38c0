/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer: text to token ids and ids to bytes. The spec below is that of byte-level BPE vocabularies
 * (GPT-2, Llama 3, Qwen 2, SmolLM), as GGUF files have them (text/tokenizer_gguf.h); text/tokenizer_json.h
 * makes every other kind. An fk_tokenizer is read-only and shared by all threads; what encoding needs to
 * write (scratch memory, a cache of words) is an fk_encoder, one a thread.
 *
 * Ids are llama.cpp's. Three choices of ours where it leaves some: control tokens are found in text only when
 * asked for; a merge that names an unknown piece is a load error; there is never more than one
 * begin-of-sequence token. */
#ifndef FK_TEXT_TOKENIZER_H
#define FK_TEXT_TOKENIZER_H

#include "text/buffer.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of piece, numbered as in tokenizer.ggml.token_type. */
typedef enum fk_token_type {
    FK_TOKEN_NORMAL = 1,       /* written in the byte map; what BPE makes */
    FK_TOKEN_UNKNOWN = 2,      /* treated like CONTROL */
    FK_TOKEN_CONTROL = 3,      /* <|im_start|>: found in text only with FK_ENCODE_PARSE_SPECIAL */
    FK_TOKEN_USER_DEFINED = 4, /* found in any text, before BPE */
    FK_TOKEN_UNUSED = 5        /* padding of the vocabulary: never made, decodes to nothing */
} fk_token_type;

typedef struct fk_merge_rule {
    fk_piece left, right;
} fk_merge_rule;

/* Splits "left right" at the first ASCII space after the first byte (pieces hold other kinds of space, T8).
 */
fk_status fk_merge_rule_parse(fk_piece line, fk_merge_rule *out);

/* Everything is borrowed during _create only. */
typedef struct fk_tokenizer_spec {
    const char *pre;        /* name of the pre-tokenizer: "smollm", "gpt-2", "llama-bpe", "qwen2" */
    const fk_piece *pieces; /* [vocab_size], text as in the file (byte map); an empty piece is never made */
    const int32_t *types;   /* [vocab_size] fk_token_type; NULL: all NORMAL */
    int64_t vocab_size;
    const fk_merge_rule *merges; /* [num_merges], best first; of a repeated pair the first counts */
    int64_t num_merges;
    int32_t bos_id;         /* -1 when there is none */
    const int32_t *eos_ids; /* ids that end a generation */
    int64_t num_eos_ids;
    int add_bos; /* 1, 0, or -1: as the pre-tokenizer's family does */
} fk_tokenizer_spec;

typedef struct fk_tokenizer fk_tokenizer;

/* Refuses: an unknown pre-tokenizer, an empty vocabulary, equal pieces, an unknown type, no merges although
 * pieces have several bytes, merges that name or make unknown pieces, ids out of range. */
fk_status fk_tokenizer_create(const fk_tokenizer_spec *spec, fk_tokenizer **out);
void fk_tokenizer_destroy(fk_tokenizer *t);

int64_t fk_tokenizer_vocab_size(const fk_tokenizer *t);
/* -1 when there is none. */
int32_t fk_tokenizer_bos_id(const fk_tokenizer *t);
bool fk_tokenizer_is_eos(const fk_tokenizer *t, int32_t id);
/* CONTROL or UNKNOWN: not part of the text. False for ids out of range. */
bool fk_tokenizer_is_special(const fk_tokenizer *t, int32_t id);
/* The bytes that the id stands for (control tokens: their name). Empty for ids out of range and unused
 * pieces. */
fk_piece fk_tokenizer_piece(const fk_tokenizer *t, int32_t id);
/* The piece as the vocabulary file writes it ("Ġthe"); empty for ids out of range. */
fk_piece fk_tokenizer_name(const fk_tokenizer *t, int32_t id);
/* The id of a piece by its text in the vocabulary file ("<|im_end|>", "Ġthe"), -1 when there is none. */
int32_t fk_tokenizer_find(const fk_tokenizer *t, fk_piece text);

enum {
    FK_ENCODE_PARSE_SPECIAL = 1, /* control tokens written in the text become their ids */
    FK_ENCODE_ADD_BOS = 2, /* begin with the BOS token when the model wants one and the text has not got it */
    FK_ENCODE_RAW_BYTES = 4,   /* bytes that are no UTF-8 are encoded as they are and come back as they were;
                                  without it they mostly become U+FFFD, as in llama.cpp (text/utf8.h) */
    FK_ENCODE_STRICT_BYTES = 8 /* a byte that the vocabulary has no piece for is an error; without it such
                                  bytes are left out, as in llama.cpp (SmolLM2 lacks 0x04, 0xF1 and others) */
};

typedef struct fk_encoder fk_encoder;

/* `t` must outlive the encoder. */
fk_status fk_encoder_create(const fk_tokenizer *t, fk_encoder **out);
void fk_encoder_destroy(fk_encoder *e);
/* Appends the ids of the text. After an error the list is as before. Texts are limited to 2^31 - 1 bytes. */
fk_status fk_encoder_encode(fk_encoder *e, const char *text, size_t bytes, unsigned flags,
                            fk_token_list *out);
/* Bytes that the last encode left out because the vocabulary has no piece for them. */
int64_t fk_encoder_dropped_bytes(const fk_encoder *e);

/* A text made of stretches of different trust, as a rendered chat prompt is. The stretches are one text
 * (words and merges go across their borders), but a control token is found only within a stretch that allows
 * it. */
typedef struct fk_text_span {
    const char *data;
    size_t bytes;
    bool parse_special;
} fk_text_span;

/* As fk_encoder_encode over the joined spans; FK_ENCODE_PARSE_SPECIAL in flags is ignored. */
fk_status fk_encoder_encode_spans(fk_encoder *e, const fk_text_span *spans, size_t count, unsigned flags,
                                  fk_token_list *out);

/* fk_encoder_encode with an encoder of its own: convenient for one text, slow for many. */
fk_status fk_tokenizer_encode(const fk_tokenizer *t, const char *text, size_t bytes, unsigned flags,
                              fk_token_list *out);

#ifdef __cplusplus
}
#endif
#endif
