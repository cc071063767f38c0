/* SPDX-License-Identifier: Apache-2.0 */
/* XLM-RoBERTa's embeddings: BERT's over a view of the table of positions that begins behind the row of padding. */
#include "core/composition.h"
#include "ops/encoder/encoder_embeddings.h"

static fk_status reference(fk_ctx *ctx, const fk_xlm_roberta_embeddings_args *a)
{
    int64_t first = a->padding_idx + 1;
    fk_bert_embeddings_module embeddings = {
        .layer_norm_eps = a->layer_norm_eps, .word_embeddings = *a->word_embeddings,
        .position_embeddings = fk_tensor_slice(*a->position_embeddings, 0, first, a->position_embeddings->shape[0] - first),
        .token_type_embeddings = *a->token_type_embeddings, .layer_norm = *a->layer_norm, .layer_norm_bias = *a->layer_norm_bias};
    fk_bert_embeddings_out(ctx, &embeddings, *a->output, *a->input_ids, *a->position_ids, *a->token_type_ids);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_xlm_roberta_embeddings_args *a)
{
    if (a->padding_idx >= 0 && a->padding_idx < a->position_embeddings->shape[0]) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "padding_idx %lld is outside the %lld rows of position_embeddings",
                       (long long)a->padding_idx, (long long)a->position_embeddings->shape[0]);
}

/* Rows are read where they are used, at most each table once. */
static fk_cost cost(const fk_xlm_roberta_embeddings_args *a)
{
    double out = fkp_bytes(a->output), word = fkp_bytes(a->word_embeddings), position = fkp_bytes(a->position_embeddings),
           type = fkp_bytes(a->token_type_embeddings);
    return (fk_cost){.read_bytes = (out < word ? out : word) + (out < position ? out : position) + (out < type ? out : type) +
                                   fkp_bytes(a->input_ids) + fkp_bytes(a->position_ids) + fkp_bytes(a->token_type_ids) +
                                   fkp_bytes(a->layer_norm) + fkp_bytes(a->layer_norm_bias),
                     .write_bytes = out,
                     .flops = 9 * (double)fk_tensor_numel(a->output)};
}

static void fill(fk_random *random, const fk_xlm_roberta_embeddings_args *a)
{
    fill_ids(random, a->input_ids, a->word_embeddings->shape[0]);
    fill_ids(random, a->position_ids, a->position_embeddings->shape[0] - a->padding_idx - 1);
    fill_ids(random, a->token_type_ids, a->token_type_embeddings->shape[0]);
}

static const char *const cases[] = {"T=0 D=8 V=3 P=4 Y=1 padding_idx=1 layer_norm_eps=1e-5",
                                    "T=5 D=63 V=7 P=9 Y=1 padding_idx=1 layer_norm_eps=1e-5",
                                    "T=9 D=64 V=50 P=16 Y=1 padding_idx=0 layer_norm_eps=1e-12 input_ids=i32",
                                    "T=33 D=1024 V=1000 P=514 Y=1 padding_idx=1 layer_norm_eps=1e-5", NULL};

#define FK_OP_DEF "encoder/xlm_roberta_embeddings.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
