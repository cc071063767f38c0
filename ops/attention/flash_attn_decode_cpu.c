/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one new token per sequence over the paged cache on the CPU: units are the query heads of one KV head with
 * SPLIT_KEYS of the sequence's keys. The split depends on the sequence alone, so that results depend neither on threads nor on
 * the batch. */
#include "ops/attention/attention_units_cpu.h"

#define SPLIT_KEYS 256 /* a multiple of ATTN_KEYS */

/* Units of one sequence, appended to `units`; only counted while that is NULL. An empty sequence has one unit a row block,
 * without keys, which gives zeros. */
static int64_t add_units(const paged_attention *a, const fk_tensor *out, int64_t sequence, int64_t length, attn_unit *units)
{
    int64_t group = a->q->shape[1] / a->k->shape[2], begin, end, count = 0;
    paged_visible(length - 1, length, true, a->window_size, &begin, &end);
    begin = begin / ATTN_KEYS * ATTN_KEYS;
    for (int64_t head = 0; head < a->k->shape[2]; head++)
        for (int64_t row = 0; row < group; row += ATTN_ROWS) {
            int64_t key = begin, first = count;
            do {
                int64_t next = (key / SPLIT_KEYS + 1) * SPLIT_KEYS;
                if (units)
                    units[count] = (attn_unit){
                        .attention = a, .out = out,
                        .task = {.sequence = sequence, .kv_head = head, .first_token = sequence, .queries = 1, .length = length,
                                 .first_row = row, .rows = group - row < ATTN_ROWS ? (int)(group - row) : ATTN_ROWS,
                                 .key_begin = key, .key_end = next < end ? next : end, .causal = true, .in_place = true}};
                count++;
                key = next;
            } while (key < end);
            if (units) units[first].splits = count - first;
        }
    return count;
}

static fk_status run(fk_ctx *ctx, const fk_flash_attn_decode_args *a)
{
    paged_attention attention = {.q = a->q, .k = a->k, .v = a->v, .seqused_k = a->seqused_k, .block_table = a->block_table,
                                 .max_seqlen_k = a->max_seqlen_k, .window_size = a->window_size,
                                 .scale = paged_scale(a->softmax_scale, a->q), .softcap = (double)a->softcap};
    int64_t sequences = a->q->shape[0], count = 0, length;
    if (fk_tensor_numel(a->q) == 0) return FK_OK;
    for (int64_t b = 0; b < sequences; b++) {
        FK_TRY(paged_length(ctx, &attention, b, &length));
        count += add_units(&attention, a->out, b, length, NULL);
    }
    attn_unit *units = fk_ctx_scratch(ctx, sizeof *units * (size_t)count);
    if (!units) return fk_ctx_status(ctx);
    count = 0;
    for (int64_t b = 0; b < sequences; b++) count += add_units(&attention, a->out, b, fkp_int1(a->seqused_k, b), units + count);
    return attn_units_run(ctx, units, count);
}

static bool supports(const fk_flash_attn_decode_args *a)
{
    return attn_supports(a->q, a->k, a->v, a->out);
}

FK_CPU_OP_IF(flash_attn_decode, run, supports);
