/* SPDX-License-Identifier: Apache-2.0 */
/* ColBERTv2's mask of tokens on the CPU: one pass over the ids for padding, one for each listed id, in loops that the compiler
 * turns into vectors; ids are split over threads in pieces that stay in cache between the passes. */
#include "core/cpu_op.h"
#include "core/threads.h"

#define PIECE 4096

#define DEFINE_PIECE(name, type)                                                                             \
    static void name(uint8_t *mask, const type *ids, int64_t n, const fk_colbertv2_token_mask_args *a)       \
    {                                                                                                        \
        const type pad = (type)a->pad_token_id, *skip = a->skiplist ? a->skiplist->data : NULL;              \
        int64_t skips = skip ? a->skiplist->shape[0] : 0;                                                    \
        for (int64_t i = 0; i < n; i++) mask[i] = ids[i] != pad;                                             \
        for (int64_t s = 0; s < skips; s++)                                                                  \
            for (int64_t i = 0; i < n; i++) mask[i] &= ids[i] != skip[s];                                    \
    }
DEFINE_PIECE(piece_i32, int32_t)
DEFINE_PIECE(piece_i64, int64_t)

static void pieces_part(void *user, int64_t begin, int64_t end)
{
    const fk_colbertv2_token_mask_args *a = user;
    int64_t n = fk_tensor_numel(a->input_ids);
    for (int64_t p = begin; p < end; p++) {
        int64_t first = p * PIECE, count = n - first < PIECE ? n - first : PIECE;
        uint8_t *mask = (uint8_t *)a->mask->data + first;
        if (a->input_ids->dtype == FK_I32) piece_i32(mask, (const int32_t *)a->input_ids->data + first, count, a);
        else piece_i64(mask, (const int64_t *)a->input_ids->data + first, count, a);
    }
}

static fk_status run(fk_ctx *ctx, const fk_colbertv2_token_mask_args *a)
{
    int64_t n = fk_tensor_numel(a->input_ids);
    if (n > 0) fkp_parallel_for(fk_ctx_threads(ctx), (n + PIECE - 1) / PIECE, 2, pieces_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_colbertv2_token_mask_args *a)
{
    return fk_tensor_is_contiguous(a->input_ids) && fk_tensor_is_contiguous(a->mask) &&
           (!a->skiplist || fk_tensor_is_contiguous(a->skiplist)) &&
           (a->input_ids->dtype == FK_I64 || (a->pad_token_id >= INT32_MIN && a->pad_token_id <= INT32_MAX));
}

FK_CPU_OP_IF(colbertv2_token_mask, run, supports);
