/* SPDX-License-Identifier: Apache-2.0 */
/* Packed keys as a paged cache with pages of one token: page cu_seqlens_k[b] + j holds token j of sequence b. So packed and
 * paged attention are one piece of code. */
#ifndef FK_OPS_VARLEN_AS_PAGED_H
#define FK_OPS_VARLEN_AS_PAGED_H

#include <fk/ops.h>

#include "ops/attention/paged_attention.h"
#include "ops/attention/varlen_pages.h"

typedef struct varlen_paged {
    fk_tensor k, v, seqused_k, block_table;
    paged_attention attention;
} varlen_paged;

/* The call in pages, its tables in scratch memory of the context, after a check of cu_seqlens_k. Host only. */
static inline fk_status varlen_to_paged(fk_ctx *ctx, const fk_flash_attn_varlen_args *a, varlen_paged *p)
{
    int64_t sequences = a->cu_seqlens_k->shape[0] - 1, num_keys = a->k->shape[0], start = 0;
    int64_t most = a->max_seqlen_k < num_keys ? a->max_seqlen_k : num_keys, table[2] = {sequences, most > 0 ? most : 0};
    int32_t *lengths = fk_ctx_scratch(ctx, sizeof *lengths * (size_t)(sequences + 1));
    int32_t *pages = fk_ctx_scratch(ctx, sizeof *pages * (size_t)(table[0] * table[1] + 1));
    if (!lengths || !pages) return fk_ctx_status(ctx);
    for (int64_t b = 0; b < sequences; b++) {
        int64_t stop = fkp_int1(a->cu_seqlens_k, b + 1);
        if (fkp_int1(a->cu_seqlens_k, b) != start || stop < start || stop > num_keys || stop - start > a->max_seqlen_k)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_k has %lld, %lld for sequence %lld, wanted to go on at %lld with at most %lld of %lld keys",
                               (long long)fkp_int1(a->cu_seqlens_k, b), (long long)stop, (long long)b, (long long)start,
                               (long long)a->max_seqlen_k, (long long)num_keys);
        lengths[b] = (int32_t)(stop - start);
        for (int64_t j = 0; j < table[1]; j++) pages[b * table[1] + j] = j < stop - start ? (int32_t)(start + j) : 0;
        start = stop;
    }
    if (start != num_keys)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_k ends at %lld of %lld keys", (long long)start, (long long)num_keys);
    p->k = varlen_pages(a->k);
    p->v = varlen_pages(a->v);
    p->seqused_k = fk_tensor_wrap(lengths, FK_I32, (fk_device){FK_CPU, 0}, 1, table);
    p->block_table = fk_tensor_wrap(pages, FK_I32, (fk_device){FK_CPU, 0}, 2, table);
    p->attention = (paged_attention){.q = a->q, .k = &p->k, .v = &p->v, .seqused_k = &p->seqused_k, .block_table = &p->block_table,
                                     .max_seqlen_k = a->max_seqlen_k, .window_size = a->window_size,
                                     .scale = paged_scale(a->softmax_scale, a->q), .softcap = (double)a->softcap};
    return FK_OK;
}

#endif
