/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of bert_layer, bert_encoder and bert_model share: work, inputs for checks, one layer of stacked weights. */
#ifndef FK_OPS_BERT_LAYER_H
#define FK_OPS_BERT_LAYER_H

#include "core/composition.h"
#include "ops/attention/paged_attention.h"

/* Layer l of a tensor that holds all layers, [L, ...]. */
static inline fk_tensor bert_layer_of(const fk_tensor *stacked, int64_t l)
{
    fk_tensor one = fk_tensor_slice(*stacked, 0, l, 1);
    return fk_tensor_reshape(one, one.ndim - 1, one.shape + 1);
}

/* Stacked norm weights stand around 1 in checks too, as those of one layer do. */
static inline void bert_fill_norm(const fk_tensor *stacked)
{
    for (int64_t i = 0; i < fk_tensor_numel(stacked); i++) {
        void *element = fk_tensor_at(stacked, i);
        fk_store_element(element, stacked->dtype, 1 + fk_load_element(element, stacked->dtype));
    }
}

static inline fk_status bert_check(fk_ctx *ctx, int64_t hidden_size, int64_t num_attention_heads)
{
    if (num_attention_heads > 0 && hidden_size % num_attention_heads == 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld features are no multiple of %lld heads", (long long)hidden_size,
                       (long long)num_attention_heads);
}

/* Queries times keys of all sequences; every sequence counts as the longest where the host cannot read them. */
static inline double bert_pairs(const fk_tensor *cu_seqlens, int64_t tokens, int64_t max_seqlen)
{
    double pairs = 0;
    if (cu_seqlens->device.type != FK_CPU || !cu_seqlens->data) return (double)tokens * (double)max_seqlen;
    for (int64_t b = 0; b + 1 < cu_seqlens->shape[0]; b++) {
        double n = (double)(fkp_int1(cu_seqlens, b + 1) - fkp_int1(cu_seqlens, b));
        pairs += n * n;
    }
    return pairs;
}

/* Operations of `layers` layers. */
static inline double bert_flops(double layers, double t, double d, double i, double pairs)
{
    return layers * (8 * t * d * d + 4 * pairs * d + 4 * t * d * i + 16 * t * d + 8 * t * i);
}

#endif
