/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer's tables, shared by the file that builds them (tokenizer.c) and the one that encodes
 * (encoder.c). */
#ifndef FK_TEXT_TOKENIZER_INTERNAL_H
#define FK_TEXT_TOKENIZER_INTERNAL_H

#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/string_matcher.h"
#include "text/tokenizer.h"

/* Texts of all ids in one block; id i is [offsets[i], offsets[i + 1]). */
typedef struct fkp_piece_table {
    fk_bytes text;
    size_t *offsets; /* [vocab_size + 1] */
} fkp_piece_table;

struct fk_tokenizer {
    const fkp_pretokenizer *pretokenizer; /* of GGUF files; those of tokenizer.json have a pipeline instead */
    struct fkp_pipeline *pipeline;
    int64_t vocab_size;
    fkp_piece_table names;   /* as in the file: what the hash finds and special tokens look like in text */
    fkp_piece_table decoded; /* the bytes that ids stand for */
    uint8_t *types;          /* [vocab_size] fk_token_type */
    uint32_t *slots;         /* hash over names: id + 1, 0 when free; power of two, at most half full */
    size_t num_slots;
    fkp_bpe bpe;
    int32_t *special_ids; /* CONTROL, UNKNOWN and USER_DEFINED: longest name first, then by id */
    size_t num_special;
    bool has_user_defined;
    fkp_string_matcher special_matcher; /* pattern i is special_ids[i] */
    int32_t bos_id;
    bool add_bos;
    int32_t *eos_ids;
    int64_t num_eos_ids;
};

static inline fk_piece fkp_piece_at(const fkp_piece_table *table, int64_t id)
{
    return (fk_piece){table->text.data + table->offsets[id], table->offsets[id + 1] - table->offsets[id]};
}

static inline bool fkp_is_control(const fk_tokenizer *t, int32_t id)
{
    return t->types[id] == FK_TOKEN_CONTROL || t->types[id] == FK_TOKEN_UNKNOWN;
}

/* As fk_tokenizer_create, with a pipeline in place of spec->pre, which the tokenizer owns, also after an error. decoded:
 * [vocab_size] the bytes that ids stand for. */
fk_status fkp_tokenizer_create_pipeline(const fk_tokenizer_spec *spec, const fk_piece *decoded, struct fkp_pipeline *pipeline,
                                        fk_tokenizer **out);

/* Hash of a byte string; also what the word cache uses. */
uint64_t fkp_hash_bytes(const uint8_t *data, size_t bytes);

#endif
