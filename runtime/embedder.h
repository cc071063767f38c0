/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of encoders: texts or token ids in, vectors on the host out. Sequences go through the model packed, several to a pass.
 * It owns the context it runs in and belongs to one thread. */
#ifndef FK_RUNTIME_EMBEDDER_H
#define FK_RUNTIME_EMBEDDER_H

#include <fk/ctx.h>
#include <fk/model.h>

#include "text/buffer.h"

typedef struct fk_embedder fk_embedder;

typedef struct fk_embedder_options {
    int threads;                /* 0: all */
    bool references_only;
    int64_t max_num_seqs;       /* sequences of a pass; 0: 32 */
    int64_t max_batched_tokens; /* tokens of a pass, unless one sequence has more; 0: 4096 */
} fk_embedder_options;

/* Refused: a model that is no encoder. `model` must outlive the embedder. */
fk_status fk_embedder_create(const fk_model *model, const fk_embedder_options *options, fk_embedder **out);
void fk_embedder_destroy(fk_embedder *embedder);
/* For hooks, pins and candidates. */
fk_ctx *fk_embedder_ctx(fk_embedder *embedder);

/* Tokens that an encoder reads of a text, special ones among them: max_seq_length where the folder has it, else its positions. */
int64_t fk_embedder_max_length(const fk_model *model);

/* ColBERT marks what a text is; the other encoders make no difference. */
typedef enum fk_text_role { FK_TEXT_DOCUMENT, FK_TEXT_QUERY } fk_text_role;

/* Appends the ids of a text as the model reads it: [CLS] ... [SEP], cut to the largest length, as sentence-transformers does.
 * *cut (may be NULL) is how many tokens of the text were left out. */
fk_status fk_embedder_tokenize(const fk_model *model, fk_piece text, fk_text_role role, fk_token_list *out, int64_t *cut);

typedef struct fk_id_span {
    const int32_t *ids; /* borrowed */
    int64_t length;
} fk_id_span;

/* Vectors of a number of sequences, float32. Those of sequence i are the rows [starts[i], starts[i + 1]): one, or one a token. */
typedef struct fk_vectors {
    int64_t count, features;
    int64_t *starts; /* [count + 1] */
    float *values;   /* [starts[count], features] */
} fk_vectors;

void fk_vectors_deinit(fk_vectors *vectors);
/* Encodes the sequences in their order. `interrupted` is asked before each pass and may be NULL. Refused, naming the sequence and
 * the value: an empty one, one that is longer than the model's positions, an id outside the vocabulary. */
fk_status fk_embedder_encode(fk_embedder *embedder, const fk_id_span *sequences, int64_t count, bool (*interrupted)(void),
                             fk_vectors *out);
/* scores[i]: how well document i fits the query (sequence `query` of `queries`). `documents` are the ids behind the vectors. */
fk_status fk_embedder_score(fk_embedder *embedder, const fk_vectors *queries, int64_t query, const fk_vectors *vectors,
                            const fk_id_span *documents, float *scores);

#endif
