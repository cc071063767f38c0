/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of many queries a sequence over a paged cache on the CPU. */
#ifndef FK_OPS_PAGED_PREFILL_CPU_H
#define FK_OPS_PAGED_PREFILL_CPU_H

#include "ops/attention/attention_units_cpu.h"

/* The units of one sequence: blocks of rows, for each the KV heads. Returns how many. */
static inline int64_t prefill_add_units(const paged_attention *a, const fk_tensor *out, int64_t sequence, int64_t first_token,
                                        int64_t queries, int64_t length, bool causal, attn_unit *units)
{
    int64_t group = a->q->shape[1] / a->k->shape[2], rows = queries * group, count = 0;
    for (int64_t row = 0; row < rows; row += ATTN_ROWS)
        for (int64_t head = 0; head < a->k->shape[2]; head++) {
            attn_task task = {.sequence = sequence, .kv_head = head, .first_token = first_token, .queries = queries,
                              .length = length, .first_row = row, .rows = rows - row < ATTN_ROWS ? (int)(rows - row) : ATTN_ROWS,
                              .causal = causal};
            int64_t position = length - queries, ignored;
            paged_visible(position + row / group, length, causal, a->window_size, &task.key_begin, &ignored);
            paged_visible(position + (row + task.rows - 1) / group, length, causal, a->window_size, &ignored, &task.key_end);
            task.key_begin = task.key_begin / ATTN_KEYS * ATTN_KEYS;
            units[count++] = (attn_unit){.attention = a, .out = out, .task = task, .splits = 1};
        }
    return count;
}

static inline fk_status paged_prefill_cpu(fk_ctx *ctx, const paged_attention *attention, const fk_tensor *cu_seqlens_q,
                                          int64_t max_seqlen_q, bool causal, const fk_tensor *out)
{
    int64_t num_tokens = attention->q->shape[0], sequences = attention->seqused_k->shape[0], start = 0, count = 0;
    int64_t group = attention->q->shape[1] / attention->k->shape[2];
    int64_t most = (num_tokens * group / ATTN_ROWS + sequences) * attention->k->shape[2];
    attn_unit *units = fk_ctx_scratch(ctx, sizeof *units * (size_t)(most + 1));
    if (!units) return fk_ctx_status(ctx);
    for (int64_t b = 0; b < sequences; b++) {
        int64_t stop = fkp_int1(cu_seqlens_q, b + 1), length;
        if (fkp_int1(cu_seqlens_q, b) != start || stop < start || stop > num_tokens || stop - start > max_seqlen_q)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_q has %lld, %lld for sequence %lld, wanted to go on at %lld with at most %lld of %lld queries",
                               (long long)fkp_int1(cu_seqlens_q, b), (long long)stop, (long long)b, (long long)start,
                               (long long)max_seqlen_q, (long long)num_tokens);
        FK_TRY(paged_length(ctx, attention, b, &length));
        count += prefill_add_units(attention, out, b, start, stop - start, length, causal, units + count);
        start = stop;
    }
    if (start != num_tokens)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_q ends at %lld of %lld queries", (long long)start,
                           (long long)num_tokens);
    return attn_units_run(ctx, units, count);
}

#endif
