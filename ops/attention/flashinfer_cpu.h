/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over listed pages on the CPU: the items of the plan are units (attention_units_cpu.h), a tile that is more rows
 * than one takes becomes several. */
#ifndef FK_OPS_FLASHINFER_CPU_H
#define FK_OPS_FLASHINFER_CPU_H

#include "ops/attention/attention_units_cpu.h"
#include "ops/attention/flashinfer_host.h"

/* One request: `attention` points to the tensors beside it. */
typedef struct flashinfer_sequence {
    paged_attention attention;
    fk_tensor block_table;
} flashinfer_sequence;

/* The units of one request, only counted while `units` is NULL. Chunks stand side by side, so that they can be joined. */
static inline int64_t flashinfer_add_units(const flashinfer_call *c, const int32_t row[PLAN_COLUMNS],
                                           const flashinfer_sequence *sequence, attn_unit *units)
{
    int64_t kv_heads = c->k.shape[2], group = c->q->shape[1] / kv_heads, rows = row[PLAN_QUERIES] * group, count = 0;
    int64_t chunks = row[PLAN_CHUNKS], length = row[PLAN_LENGTH], chunk = plan_ceil(length, chunks);
    chunk = (chunk + ATTN_KEYS - 1) / ATTN_KEYS * ATTN_KEYS; /* ranges start where blocks of keys do */
    if (!units) return (rows + ATTN_ROWS - 1) / ATTN_ROWS * kv_heads * chunks;
    for (int64_t first = 0; first < rows; first += ATTN_ROWS)
        for (int64_t head = 0; head < kv_heads; head++)
            for (int64_t i = 0; i < chunks; i++) {
                attn_unit *u = &units[count];
                *u = (attn_unit){.attention = &sequence->attention, .out = c->out, .splits = i == 0 ? chunks : 0,
                                 .task = {.kv_head = head, .first_token = row[PLAN_FIRST_QUERY], .queries = row[PLAN_QUERIES],
                                          .length = length, .first_row = first, .in_place = true,
                                          .causal = flashinfer_plan_at(c, 0, PLAN_CAUSAL) != 0,
                                          .rows = rows - first < ATTN_ROWS ? (int)(rows - first) : ATTN_ROWS}};
                int64_t position = length - row[PLAN_QUERIES], begin, end, ignored;
                paged_visible(position + first / group, length, u->task.causal, sequence->attention.window_size, &begin, &ignored);
                paged_visible(position + (first + u->task.rows - 1) / group, length, u->task.causal, sequence->attention.window_size,
                              &ignored, &end);
                u->task.key_begin = i * chunk > begin ? i * chunk : begin / ATTN_KEYS * ATTN_KEYS;
                u->task.key_end = i + 1 < chunks && (i + 1) * chunk < end ? (i + 1) * chunk : end;
                count++;
            }
    return count;
}

static inline fk_status flashinfer_run_cpu(fk_ctx *ctx, const flashinfer_call *c)
{
    int64_t requests = c->plan->shape[0] - 1, count = 0;
    FK_TRY(flashinfer_covered(ctx, c));
    flashinfer_sequence *sequences = fk_ctx_scratch(ctx, sizeof *sequences * (size_t)(requests + 1));
    if (!sequences) return fk_ctx_status(ctx);
    for (int64_t r = 0; r < requests; r++) {
        int32_t row[PLAN_COLUMNS];
        FK_TRY(flashinfer_request(ctx, c, r, row));
        flashinfer_sequence *s = &sequences[r];
        *s = (flashinfer_sequence){.attention = flashinfer_attention(c), .block_table = flashinfer_table(c, row)};
        s->attention.block_table = &s->block_table;
        count += flashinfer_add_units(c, row, s, NULL);
    }
    attn_unit *units = fk_ctx_scratch(ctx, sizeof *units * (size_t)(count + 1));
    if (!units) return fk_ctx_status(ctx);
    count = 0;
    for (int64_t r = 0; r < requests; r++) {
        int32_t row[PLAN_COLUMNS];
        FK_TRY(flashinfer_request(ctx, c, r, row));
        count += flashinfer_add_units(c, row, &sequences[r], units + count);
    }
    return attn_units_run(ctx, units, count);
}

#endif
