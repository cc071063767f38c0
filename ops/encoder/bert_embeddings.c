/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's embeddings (arXiv:1810.04805). Each sum is rounded to the storage dtype, in the order of production code: word and
 * segment first, then the place. */
#include "core/composition.h"
#include "ops/encoder/encoder_embeddings.h"

static fk_status reference(fk_ctx *ctx, const fk_bert_embeddings_args *a)
{
    fk_tensor words = fk_embedding(ctx, *a->word_embeddings, *a->input_ids).output; /* [T, D] */
    fk_tensor types = fk_embedding(ctx, *a->token_type_embeddings, *a->token_type_ids).output;
    fk_tensor places = fk_embedding(ctx, *a->position_embeddings, *a->position_ids).output;
    fk_tensor sum = fk_add(ctx, fk_add(ctx, words, types).output, places).output;
    fk_layer_norm_out(ctx, *a->output, sum, *a->layer_norm, *a->layer_norm_bias, a->layer_norm_eps);
    return fk_ctx_status(ctx);
}

/* Rows are read where they are used, at most each table once. */
static fk_cost cost(const fk_bert_embeddings_args *a)
{
    double out = fkp_bytes(a->output), word = fkp_bytes(a->word_embeddings), position = fkp_bytes(a->position_embeddings),
           type = fkp_bytes(a->token_type_embeddings);
    return (fk_cost){.read_bytes = (out < word ? out : word) + (out < position ? out : position) + (out < type ? out : type) +
                                   fkp_bytes(a->input_ids) + fkp_bytes(a->position_ids) + fkp_bytes(a->token_type_ids) +
                                   fkp_bytes(a->layer_norm) + fkp_bytes(a->layer_norm_bias),
                     .write_bytes = out,
                     .flops = 9 * (double)fk_tensor_numel(a->output)};
}

static void fill(fk_random *random, const fk_bert_embeddings_args *a)
{
    fill_ids(random, a->input_ids, a->word_embeddings->shape[0]);
    fill_ids(random, a->position_ids, a->position_embeddings->shape[0]);
    fill_ids(random, a->token_type_ids, a->token_type_embeddings->shape[0]);
}

static const char *const cases[] = {"T=0 D=8 V=3 P=4 Y=1 layer_norm_eps=1e-12", "T=5 D=63 V=7 P=9 Y=2 layer_norm_eps=1e-5",
                                    "T=9 D=64 V=50 P=16 Y=2 layer_norm_eps=1e-12 input_ids=i32 position_ids=i32",
                                    "T=33 D=384 V=1000 P=512 Y=2 layer_norm_eps=1e-12", NULL};

#define FK_OP_DEF "encoder/bert_embeddings.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
