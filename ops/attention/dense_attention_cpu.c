/* SPDX-License-Identifier: Apache-2.0 */
/* Attention without a cache on the CPU: each sequence of the batch is a cache of one page, its keys. */
#include "ops/attention/attention_units_cpu.h"
#include "ops/attention/dense_mask.h"

/* One sequence of the batch: `attention` points to the tensors beside it. */
typedef struct dense_sequence {
    paged_attention attention;
    fk_tensor q, k, v, out, mask, block_table; /* out [T, H, E] */
} dense_sequence;

/* [B, H, T, E] as [T, H, E] of sequence b. */
static fk_tensor tokens_first(const fk_tensor *t, int64_t b)
{
    fk_tensor view = *t;
    view.ndim = 3;
    view.data = (char *)t->data + b * t->strides[0] * fkp_element_size(t->dtype);
    view.shape[0] = t->shape[2], view.strides[0] = t->strides[2];
    view.shape[1] = t->shape[1], view.strides[1] = t->strides[1];
    view.shape[2] = t->shape[3], view.strides[2] = t->strides[3];
    return view;
}

/* [B, K, U, E] as one page [1, U, K, E] of sequence b. */
static fk_tensor page(const fk_tensor *t, int64_t b)
{
    fk_tensor tokens = tokens_first(t, b), view = tokens;
    view.ndim = 4;
    view.shape[0] = 1, view.strides[0] = 0;
    for (int i = 0; i < 3; i++) view.shape[i + 1] = tokens.shape[i], view.strides[i + 1] = tokens.strides[i];
    return view;
}

static void describe(const fk_dense_attention_args *a, int64_t b, int32_t *page_number, dense_sequence *s)
{
    const int64_t table[2] = {1, 1};
    *s = (dense_sequence){.q = tokens_first(a->query, b), .k = page(a->key, b), .v = page(a->value, b), .out = tokens_first(a->output, b),
                         .block_table = fk_tensor_wrap(page_number, FK_I32, (fk_device){FK_CPU, 0}, 2, table)};
    s->attention = (paged_attention){.q = &s->q, .k = &s->k, .v = &s->v, .block_table = &s->block_table, .window_size = -1,
                                     .scale = paged_scale(a->scale, &s->q)};
    if (!a->attn_mask) return;
    fk_tensor mask = dense_mask(a);
    s->mask = mask;
    s->mask.ndim = 3;
    s->mask.data = (char *)mask.data + b * mask.strides[0] * fkp_element_size(mask.dtype);
    for (int i = 0; i < 3; i++) s->mask.shape[i] = mask.shape[i + 1], s->mask.strides[i] = mask.strides[i + 1];
    s->attention.mask = &s->mask;
}

static fk_status run(fk_ctx *ctx, const fk_dense_attention_args *a)
{
    int64_t batch = a->query->shape[0], queries = a->query->shape[2], keys = a->key->shape[2], kv_heads = a->key->shape[1];
    if (fk_tensor_numel(a->output) == 0) return FK_OK;
    int64_t rows = queries * (a->query->shape[1] / kv_heads), blocks = (rows + ATTN_ROWS - 1) / ATTN_ROWS, count = 0;
    int32_t page_number = 0;
    dense_sequence *sequences = fk_ctx_scratch(ctx, sizeof *sequences * (size_t)batch);
    attn_unit *units = fk_ctx_scratch(ctx, sizeof *units * (size_t)(batch * blocks * kv_heads));
    if (!sequences || !units) return fk_ctx_status(ctx);
    for (int64_t b = 0; b < batch; b++) {
        describe(a, b, &page_number, &sequences[b]);
        for (int64_t row = 0; row < rows; row += ATTN_ROWS)
            for (int64_t head = 0; head < kv_heads; head++) {
                attn_unit *u = &units[count++];
                /* As many queries as keys, as far as positions go: both count from the first key. */
                *u = (attn_unit){.attention = &sequences[b].attention, .out = &sequences[b].out, .splits = 1,
                                 .task = {.kv_head = head, .queries = keys, .length = keys, .first_row = row, .causal = a->is_causal,
                                          .in_place = true, .rows = rows - row < ATTN_ROWS ? (int)(rows - row) : ATTN_ROWS}};
                int64_t group = a->query->shape[1] / kv_heads, ignored;
                paged_visible((row + u->task.rows - 1) / group, keys, a->is_causal, -1, &ignored, &u->task.key_end);
            }
    }
    return attn_units_run(ctx, units, count);
}

static bool supports(const fk_dense_attention_args *a)
{
    const fk_tensor *dense[] = {a->query, a->key, a->value, a->output};
    for (int i = 0; i < 4; i++)
        if (dense[i]->shape[3] != 1 && dense[i]->strides[3] != 1) return false;
    return true;
}

FK_CPU_OP_IF(dense_attention, run, supports);
