/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of packed sequences, the specification: scores and probabilities in double, one rounding at the end. With a
 * window, query i sees keys from its own position minus window_size on; causal or not decides about later keys alone. */
#include <fk/ops.h>

#include "ops/attention/varlen_as_paged.h"

static fk_status reference(fk_ctx *ctx, const fk_flash_attn_varlen_args *a)
{
    varlen_paged p;
    FK_TRY(varlen_to_paged(ctx, a, &p));
    return paged_prefill(ctx, &p.attention, a->cu_seqlens_q, a->max_seqlen_q, a->causal, a->out);
}

static fk_status check(fk_ctx *ctx, const fk_flash_attn_varlen_args *a)
{
    fk_tensor pages = varlen_pages(a->k);
    return paged_check(ctx, a->q, &pages);
}

static fk_cost cost(const fk_flash_attn_varlen_args *a)
{
    double pairs = 0, sequences = (double)(a->cu_seqlens_q->shape[0] - 1);
    bool exact = a->cu_seqlens_q->device.type == FK_CPU && a->cu_seqlens_q->data && a->cu_seqlens_k->data;
    for (int64_t b = 0; exact && b + 1 < a->cu_seqlens_q->shape[0]; b++) {
        int64_t queries = fkp_int1(a->cu_seqlens_q, b + 1) - fkp_int1(a->cu_seqlens_q, b);
        int64_t keys = fkp_int1(a->cu_seqlens_k, b + 1) - fkp_int1(a->cu_seqlens_k, b);
        for (int64_t i = 0; i < queries; i++) {
            int64_t begin, end;
            paged_visible(keys - queries + i, keys, a->causal, a->window_size, &begin, &end);
            pairs += (double)(end - begin);
        }
    }
    if (!exact && sequences > 0) pairs = (double)a->q->shape[0] * (double)a->k->shape[0] / sequences;
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->q) + (double)fk_tensor_nbytes(a->k) + (double)fk_tensor_nbytes(a->v) +
                                   (double)fk_tensor_nbytes(a->cu_seqlens_q) + (double)fk_tensor_nbytes(a->cu_seqlens_k),
                     .write_bytes = (double)fk_tensor_nbytes(a->out),
                     .flops = 4 * pairs * (double)(a->q->shape[1] * a->q->shape[2])};
}

/* As many keys as queries: the same lengths, as encoders have them; else lengths of their own. */
static void fill(fk_random *random, const fk_flash_attn_varlen_args *a)
{
    paged_limit(a->q);
    paged_limit(a->k);
    paged_fill_cu_seqlens(random, a->cu_seqlens_q, a->q->shape[0], a->max_seqlen_q);
    if (a->q->shape[0] != a->k->shape[0] || a->max_seqlen_q != a->max_seqlen_k) {
        paged_fill_cu_seqlens(random, a->cu_seqlens_k, a->k->shape[0], a->max_seqlen_k);
        return;
    }
    for (int64_t b = 0; b < a->cu_seqlens_k->shape[0]; b++)
        fkp_set_int(a->cu_seqlens_k, fkp_at1(a->cu_seqlens_k, b), fkp_int1(a->cu_seqlens_q, b));
}

#define ENCODER " softmax_scale=0 causal=False window_size=-1 softcap=0"
#define DECODER " softmax_scale=0 causal=True window_size=-1 softcap=0"
static const char *const cases[] = {
    "T=0 U=0 B=0 H=2 K=1 E=8 max_seqlen_q=0 max_seqlen_k=0" ENCODER,
    "T=2 U=2 B=1 H=1 K=1 E=1 max_seqlen_q=2 max_seqlen_k=2" ENCODER,
    "T=17 U=17 B=4 H=4 K=4 E=15 max_seqlen_q=8 max_seqlen_k=8" ENCODER,
    "T=40 U=40 B=3 H=12 K=12 E=32 max_seqlen_q=20 max_seqlen_k=20" ENCODER,
    "T=65 U=65 B=1 H=4 K=4 E=64 max_seqlen_q=65 max_seqlen_k=65" ENCODER,
    "T=33 U=70 B=3 H=9 K=3 E=64 max_seqlen_q=20 max_seqlen_k=40" DECODER,
    "T=70 U=33 B=2 H=4 K=2 E=48 max_seqlen_q=40 max_seqlen_k=20" DECODER,
    "T=20 U=60 B=2 H=8 K=2 E=128 max_seqlen_q=12 max_seqlen_k=60 softmax_scale=0.05 causal=False window_size=-1 softcap=0",
    "T=21 U=37 B=2 H=4 K=2 E=32 max_seqlen_q=15 max_seqlen_k=37 softmax_scale=0 causal=True window_size=7 softcap=0",
    "T=11 U=20 B=2 H=2 K=1 E=32 max_seqlen_q=8 max_seqlen_k=20 softmax_scale=0 causal=False window_size=3 softcap=2.5",
    NULL};

#define FK_OP_DEF "attention/flash_attn_varlen.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
