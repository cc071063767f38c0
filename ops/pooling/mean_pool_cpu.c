/* SPDX-License-Identifier: Apache-2.0 */
/* Mean over tokens on the CPU: a thread takes pieces of sequences, some vectors of features wide, and walks down their rows.
 * Two sums in turn halve the error of a long one. */
#include "core/cpu_op.h"
#include "core/simd.h"
#include "core/threads.h"

#define GRAIN_ELEMENTS 16384      /* below this a second thread costs more than it saves */
#define PIECE (4 * FKP_LANES)     /* features of one piece of work */

static int64_t pieces_of(const fk_mean_pool_args *a)
{
    return (a->hidden_states->shape[1] + PIECE - 1) / PIECE;
}

static void pieces_part(void *user, int64_t begin, int64_t end)
{
    const fk_mean_pool_args *a = user;
    const int32_t *starts = a->cu_seqlens->data;
    const fk_tensor *h = a->hidden_states;
    int64_t d = h->shape[1], in_stride = fk_row_stride(h), out_stride = fk_row_stride(a->output);
    for (int64_t p = begin; p < end; p++) {
        int64_t b = p / pieces_of(a), first = p % pieces_of(a) * PIECE, last = first + PIECE < d ? first + PIECE : d, i = first;
        int64_t start = starts[b], stop = starts[b + 1];
        float scale = stop > start ? 1.0f / (float)(stop - start) : 0;
        for (; i + FKP_LANES <= last; i += FKP_LANES) {
            fkp_vf sums[2] = {{0}};
            for (int64_t t = start; t < stop; t++) sums[t & 1] += fkp_v_load(h->data, h->dtype, t * in_stride + i);
            fkp_v_store(a->output->data, h->dtype, b * out_stride + i, (sums[0] + sums[1]) * scale);
        }
        for (; i < last; i++) {
            float sums[2] = {0};
            for (int64_t t = start; t < stop; t++) sums[t & 1] += fkp_s_load(h->data, h->dtype, t * in_stride + i);
            fkp_s_store(a->output->data, h->dtype, b * out_stride + i, (sums[0] + sums[1]) * scale);
        }
    }
}

static fk_status run(fk_ctx *ctx, const fk_mean_pool_args *a)
{
    int64_t sequences = a->output->shape[0], tokens = a->hidden_states->shape[0];
    const int32_t *starts = a->cu_seqlens->data;
    for (int64_t b = 0; b < sequences; b++)
        if (starts[b] < 0 || starts[b + 1] < starts[b] || starts[b + 1] > tokens)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens has %d, %d for sequence %lld of %lld tokens in all", starts[b],
                               starts[b + 1], (long long)b, (long long)tokens);
    if (fk_tensor_numel(a->output) == 0) return FK_OK;
    int64_t each = 1 + tokens / sequences * PIECE; /* elements of a piece, about */
    fkp_parallel_for(fk_ctx_threads(ctx), sequences * pieces_of(a), 1 + GRAIN_ELEMENTS / each, pieces_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_mean_pool_args *a)
{
    return fk_tensor_has_rows(a->hidden_states) && fk_tensor_has_rows(a->output) && fk_tensor_is_contiguous(a->cu_seqlens);
}

FK_CPU_OP_IF(mean_pool, run, supports);
