/* SPDX-License-Identifier: Apache-2.0 */
/* One task of attention on the CPU: softmax over blocks of keys with a running maximum
 * (arXiv:2205.14135, algorithm 1), both products on the register tile of core/gemm.h.
 *
 * A row is one query of one head. The rows of a KV head's group share its keys: a task takes up to ATTN_ROWS of them, in the
 * order query by query, heads of the group side by side. Per block of ATTN_KEYS keys it copies keys (turned: lanes run over
 * keys) and values (lanes run over features) out of the pages as float32, which serves all rows; scores, masks and the
 * exponential are float32. Blocks start at multiples of ATTN_KEYS, so that a row's result depends neither on the rows beside
 * it nor on threads. */
#ifndef FK_OPS_PAGED_ATTENTION_CPU_H
#define FK_OPS_PAGED_ATTENTION_CPU_H

#include "core/gemm.h"
#include "ops/attention/attention_units_cpu.h"

static_assert(ATTN_ROWS % FKP_GEMM_COLUMNS == 0 && ATTN_KEYS % FKP_GEMM_PANEL == 0, "tiles fill rows and keys");

/* Working memory of one thread, all float32. Rows of q and p lie FKP_GEMM_STRIDE apart, as tiles want them. */
typedef struct attn_work {
    float *q;      /* [chunk of E][row][E in chunk], scaled */
    float *keys;   /* [panel of keys][E][key in panel] */
    float *values; /* [panel of E][key][E in panel] */
    float *scores; /* [panel of keys][row][key in panel] */
    float *p;      /* [row][key] */
    float *sums;   /* [panel of E][row][E in panel]: sum of p * value */
    float largest[ATTN_ROWS], total[ATTN_ROWS]; /* running maximum and sum of p, per row */
} attn_work;

static inline int64_t attn_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int64_t attn_padded(const paged_attention *a)
{
    return attn_round_up(a->q->shape[2], FKP_GEMM_PANEL);
}

static inline int64_t attn_q_floats(const paged_attention *a)
{
    return attn_round_up(a->q->shape[2], FKP_GEMM_DEPTH) / FKP_GEMM_DEPTH * ATTN_ROWS * FKP_GEMM_STRIDE;
}

/* Floats of one thread's working memory. */
static inline int64_t attn_work_floats(const paged_attention *a)
{
    int64_t padded = attn_padded(a);
    return attn_q_floats(a) + 2 * ATTN_KEYS * padded + ATTN_ROWS * ATTN_KEYS + ATTN_ROWS * FKP_GEMM_STRIDE + ATTN_ROWS * padded;
}

static inline attn_work attn_work_in(const paged_attention *a, float *memory)
{
    int64_t padded = attn_padded(a);
    attn_work w = {.q = memory};
    w.keys = w.q + attn_q_floats(a);
    w.values = w.keys + ATTN_KEYS * padded;
    w.scores = w.values + ATTN_KEYS * padded;
    w.p = w.scores + ATTN_ROWS * ATTN_KEYS;
    w.sums = w.p + ATTN_ROWS * FKP_GEMM_STRIDE;
    return w;
}

/* Queries of the task's rows, scaled; rows that fill up the last tile get zero queries and probabilities. */
static inline void attn_load_queries(const paged_attention *a, const attn_task *task, attn_work *w)
{
    int64_t features = a->q->shape[2], group = a->q->shape[1] / a->k->shape[2];
    float scale = (float)a->scale;
    for (int64_t r = task->rows; r < attn_round_up(task->rows, FKP_GEMM_COLUMNS); r++) {
        for (int64_t chunk = 0; chunk < attn_q_floats(a); chunk += ATTN_ROWS * FKP_GEMM_STRIDE)
            memset(w->q + chunk + r * FKP_GEMM_STRIDE, 0, sizeof(float) * FKP_GEMM_STRIDE);
        memset(w->p + r * FKP_GEMM_STRIDE, 0, sizeof(float) * ATTN_KEYS);
    }
    for (int r = 0; r < task->rows; r++) {
        int64_t row = task->first_row + r;
        int64_t at = (task->first_token + row / group) * a->q->strides[0] + (task->kv_head * group + row % group) * a->q->strides[1];
        for (int64_t e = 0; e < features; e++)
            w->q[(e / FKP_GEMM_DEPTH * ATTN_ROWS + r) * FKP_GEMM_STRIDE + e % FKP_GEMM_DEPTH] =
                fkp_s_load(a->q->data, a->q->dtype, at + e) * scale;
    }
}

/* Position of key j's features in the cache `t`. */
static inline int64_t attn_cache_offset(const paged_attention *a, const fk_tensor *t, const attn_task *task, int64_t j)
{
    const int32_t *blocks = (const int32_t *)a->block_table->data + task->sequence * a->block_table->strides[0];
    int64_t block = blocks[j / t->shape[1] * a->block_table->strides[1]];
    return block * t->strides[0] + j % t->shape[1] * t->strides[1] + task->kv_head * t->strides[2];
}

/* Keys [first, first + count), turned; up to the end of the last panel in use they are followed by zeros. */
static inline __attribute__((always_inline)) void attn_load_keys(const paged_attention *a, fk_dtype dtype, const attn_task *task,
                                                                 int64_t first, int count, float *keys)
{
    int64_t features = a->k->shape[3];
    for (int group = 0; group < attn_round_up(count, FKP_GEMM_PANEL); group += FKP_LANES) {
        float *to = keys + group / FKP_GEMM_PANEL * FKP_GEMM_PANEL * features + group % FKP_GEMM_PANEL;
        int64_t at[FKP_LANES], e = 0;
        for (int i = 0; i < FKP_LANES; i++)
            at[i] = group + i < count ? attn_cache_offset(a, a->k, task, first + group + i) : -1;
        for (; e + FKP_LANES <= features; e += FKP_LANES) {
            fkp_vf square[FKP_LANES];
            for (int i = 0; i < FKP_LANES; i++) square[i] = at[i] >= 0 ? fkp_v_load(a->k->data, dtype, at[i] + e) : fkp_v_set(0);
            fkp_v_transpose(square);
            for (int i = 0; i < FKP_LANES; i++) fkp_v_store_f32(to + (e + i) * FKP_GEMM_PANEL, square[i]);
        }
        for (; e < features; e++)
            for (int i = 0; i < FKP_LANES; i++)
                to[e * FKP_GEMM_PANEL + i] = at[i] >= 0 ? fkp_s_load(a->k->data, dtype, at[i] + e) : 0;
    }
}

static inline __attribute__((always_inline)) void attn_load_values(const paged_attention *a, fk_dtype dtype, const attn_task *task,
                                                                   int64_t first, int count, float *values)
{
    int64_t features = a->v->shape[3];
    for (int j = 0; j < count; j++) {
        int64_t at = attn_cache_offset(a, a->v, task, first + j), e = 0;
        for (; e + FKP_LANES <= features; e += FKP_LANES)
            fkp_v_store_f32(values + e / FKP_GEMM_PANEL * FKP_GEMM_PANEL * ATTN_KEYS + j * FKP_GEMM_PANEL + e % FKP_GEMM_PANEL,
                            fkp_v_load(a->v->data, dtype, at + e));
        for (; e < attn_round_up(features, FKP_GEMM_PANEL); e++)
            values[e / FKP_GEMM_PANEL * FKP_GEMM_PANEL * ATTN_KEYS + j * FKP_GEMM_PANEL + e % FKP_GEMM_PANEL] =
                e < features ? fkp_s_load(a->v->data, dtype, at + e) : 0;
    }
}

/* What the mask adds to the scores of keys [column, column + FKP_LANES) of a row whose masks start at `at`. */
static inline fkp_vf attn_mask_vector(const fk_tensor *mask, int64_t at, int64_t column)
{
    int64_t columns = mask->shape[2], step = mask->strides[2];
    if (mask->dtype != FK_BOOL && step == 1 && column >= 0 && column + FKP_LANES <= columns)
        return fkp_v_load(mask->data, mask->dtype, at + column);
    fkp_vf added = fkp_v_set(0);
    for (int i = 0; i < FKP_LANES; i++) {
        int64_t c = column + i;
        if (c < 0 || c >= columns) continue;
        if (mask->dtype == FK_BOOL) added[i] = ((const uint8_t *)mask->data)[at + c * step] ? 0 : -INFINITY;
        else added[i] = fkp_s_load(mask->data, mask->dtype, at + c * step);
    }
    return added;
}

/* Scores of one row with the block's keys become probabilities relative to the row's running maximum, in p. Returns the
 * factor that the row's earlier sums take. [begin, end): the keys of the block that the row sees; mask_at and mask_column: its
 * place in the mask and the block's first column there. */
static inline float attn_softmax_row(const paged_attention *a, attn_work *w, int row, int rows, int begin, int end, int count,
                                     int64_t mask_at, int64_t mask_column)
{
    fkp_vi lane;
    for (int i = 0; i < FKP_LANES; i++) lane[i] = i;
    float *p = w->p + row * FKP_GEMM_STRIDE, softcap = (float)a->softcap;
    fkp_vf largest = fkp_v_set(-INFINITY);
    for (int j = 0; j < count; j += FKP_LANES) {
        fkp_vf s = fkp_v_load_f32(w->scores + (j / FKP_GEMM_PANEL * rows + row) * FKP_GEMM_PANEL + j % FKP_GEMM_PANEL);
        if (softcap > 0) s = softcap * fkp_v_tanh(s / softcap);
        if (a->mask) s += attn_mask_vector(a->mask, mask_at, mask_column + j);
        if (j < begin || j + FKP_LANES > end)
            s = fkp_v_select((lane + j >= begin) & (lane + j < end), s, fkp_v_set(-INFINITY));
        largest = fkp_v_larger(largest, s);
        fkp_v_store_f32(p + j, s);
    }
    float before = w->largest[row], now = fkp_v_max(largest);
    if (now < before) now = before;
    float base = now == -INFINITY ? 0 : now; /* nothing seen yet: every exponential below is 0 */
    fkp_vf total = fkp_v_set(0);
    for (int j = 0; j < count; j += FKP_LANES) {
        fkp_vf e = fkp_v_exp(fkp_v_load_f32(p + j) - base);
        total += e;
        fkp_v_store_f32(p + j, e);
    }
    float factor = before == now ? 1 : fkp_s_exp(before - base);
    w->largest[row] = now;
    w->total[row] = w->total[row] * factor + fkp_v_sum(total);
    return factor;
}

/* Scores of all rows with keys [first, first + count) become probabilities; earlier sums are brought to the new maximum. */
static inline void attn_softmax_rows(const paged_attention *a, const attn_task *task, attn_work *w, int64_t first, int count)
{
    int rows = (int)attn_round_up(task->rows, FKP_GEMM_COLUMNS);
    int64_t padded = attn_padded(a), group = a->q->shape[1] / a->k->shape[2];
    for (int r = 0; r < task->rows; r++) {
        int64_t begin, end, position = task->length - task->queries + (task->first_row + r) / group;
        paged_visible(position, task->length, task->causal, a->window_size, &begin, &end);
        begin = begin < first ? 0 : begin - first > count ? count : begin - first;
        end = end < first ? 0 : end - first > count ? count : end - first;
        int64_t query = (task->first_row + r) / group, head = task->kv_head * group + (task->first_row + r) % group;
        int64_t mask_at = a->mask ? head * a->mask->strides[0] + (task->first_query + query) * a->mask->strides[1] : 0;
        float factor = attn_softmax_row(a, w, r, rows, (int)begin, (int)end, count, mask_at, first - (task->length - task->queries));
        if (factor != 1)
            for (int64_t e = 0; e < padded; e += FKP_LANES) {
                float *sum = w->sums + (e / FKP_GEMM_PANEL * rows + r) * FKP_GEMM_PANEL + e % FKP_GEMM_PANEL;
                fkp_v_store_f32(sum, fkp_v_load_f32(sum) * factor);
            }
    }
}

static inline void attn_block(const paged_attention *a, const attn_task *task, attn_work *w, int64_t first, int count)
{
    int rows = (int)attn_round_up(task->rows, FKP_GEMM_COLUMNS);
    int64_t features = a->q->shape[2], padded = attn_padded(a);
    if (a->k->dtype == FK_F32) attn_load_keys(a, FK_F32, task, first, count, w->keys);
    else if (a->k->dtype == FK_BF16) attn_load_keys(a, FK_BF16, task, first, count, w->keys);
    else attn_load_keys(a, FK_F16, task, first, count, w->keys);
    for (int j = 0; j < count; j += FKP_GEMM_PANEL)
        for (int r = 0; r < rows; r += FKP_GEMM_COLUMNS)
            for (int64_t e = 0; e < features; e += FKP_GEMM_DEPTH)
                fkp_gemm_tile(2, FKP_GEMM_COLUMNS, features - e < FKP_GEMM_DEPTH ? features - e : FKP_GEMM_DEPTH,
                              w->keys + j * features + e * FKP_GEMM_PANEL,
                              w->q + (e / FKP_GEMM_DEPTH * ATTN_ROWS + r) * FKP_GEMM_STRIDE,
                              w->scores + (j / FKP_GEMM_PANEL * rows + r) * FKP_GEMM_PANEL, e == 0);
    attn_softmax_rows(a, task, w, first, count);
    if (a->v->dtype == FK_F32) attn_load_values(a, FK_F32, task, first, count, w->values);
    else if (a->v->dtype == FK_BF16) attn_load_values(a, FK_BF16, task, first, count, w->values);
    else attn_load_values(a, FK_F16, task, first, count, w->values);
    for (int64_t e = 0; e < padded; e += FKP_GEMM_PANEL)
        for (int r = 0; r < rows; r += FKP_GEMM_COLUMNS)
            fkp_gemm_tile(2, FKP_GEMM_COLUMNS, count, w->values + e * ATTN_KEYS, w->p + r * FKP_GEMM_STRIDE,
                          w->sums + (e / FKP_GEMM_PANEL * rows + r) * FKP_GEMM_PANEL, false);
}

/* Queries in place, nothing summed yet. */
static inline void attn_start(const paged_attention *a, const attn_task *task, attn_work *w)
{
    attn_load_queries(a, task, w);
    memset(w->sums, 0, sizeof(float) * (size_t)(attn_round_up(task->rows, FKP_GEMM_COLUMNS) * attn_padded(a)));
    for (int r = 0; r < ATTN_ROWS; r++) {
        w->largest[r] = -INFINITY;
        w->total[r] = 0;
    }
}

/* Fills w->sums, largest and total for the task's rows and keys. */
static inline void attn_run(const paged_attention *a, const attn_task *task, attn_work *w)
{
    attn_start(a, task, w);
    for (int64_t first = task->key_begin; first < task->key_end; first += ATTN_KEYS)
        attn_block(a, task, w, first, task->key_end - first < ATTN_KEYS ? (int)(task->key_end - first) : ATTN_KEYS);
}

/* Sum e of row r of a task that attn_run has done. */
static inline float *attn_sum(const attn_task *task, const attn_work *w, int r, int64_t e)
{
    int64_t rows = attn_round_up(task->rows, FKP_GEMM_COLUMNS);
    return w->sums + (e / FKP_GEMM_PANEL * rows + r) * FKP_GEMM_PANEL + e % FKP_GEMM_PANEL;
}

/* A few rows, as decode has them, do not repay the copies: attn_few_run reads keys and values in place. It takes heads whose
 * features fill whole vectors and blocks of pages that attn_run would take; its result stands where attn_run's does. */
#define ATTN_FEW_ROWS 8

static inline bool attn_few(const paged_attention *a, const attn_task *task)
{
    return task->in_place && task->rows <= ATTN_FEW_ROWS && a->q->shape[2] % FKP_LANES == 0;
}

/* Scores of FKP_LANES keys (positions `at`, of which `count` are there) with each row, into w->scores as attn_block has them. */
static inline __attribute__((always_inline)) void attn_few_scores(const paged_attention *a, fk_dtype dtype, const attn_task *task,
                                                                  attn_work *w, const int64_t at[FKP_LANES], int j)
{
    int rows = (int)attn_round_up(task->rows, FKP_GEMM_COLUMNS);
    for (int r = 0; r < task->rows; r++) {
        fkp_vf acc[FKP_LANES];
        for (int i = 0; i < FKP_LANES; i++) acc[i] = fkp_v_set(0);
        for (int64_t e = 0; e < a->q->shape[2]; e += FKP_LANES) {
            fkp_vf q = fkp_v_load_f32(w->q + (e / FKP_GEMM_DEPTH * ATTN_ROWS + r) * FKP_GEMM_STRIDE + e % FKP_GEMM_DEPTH);
#pragma GCC unroll 16
            for (int i = 0; i < FKP_LANES; i++) acc[i] += q * fkp_v_load(a->k->data, dtype, at[i] + e);
        }
        fkp_v_store_f32(w->scores + (j / FKP_GEMM_PANEL * rows + r) * FKP_GEMM_PANEL + j % FKP_GEMM_PANEL, fkp_v_sums(acc));
    }
}

/* sums[row] += sum over keys of p[row][key] * value, for `few` rows from `row` on and one vector of features. */
static inline __attribute__((always_inline)) void attn_few_values(const paged_attention *a, fk_dtype dtype, const int few,
                                                                  const attn_task *task, attn_work *w, const int64_t *at, int count,
                                                                  int row, int64_t e)
{
    int64_t rows = attn_round_up(task->rows, FKP_GEMM_COLUMNS);
    float *sums = w->sums + (e / FKP_GEMM_PANEL * rows + row) * FKP_GEMM_PANEL + e % FKP_GEMM_PANEL;
    fkp_vf even[4], odd[4]; /* two chains a row hide the latency of the additions */
    for (int r = 0; r < few; r++) {
        even[r] = fkp_v_load_f32(sums + r * FKP_GEMM_PANEL);
        odd[r] = fkp_v_set(0);
    }
    int j = 0;
    for (; j + 2 <= count; j += 2) {
        fkp_vf first = fkp_v_load(a->v->data, dtype, at[j] + e), second = fkp_v_load(a->v->data, dtype, at[j + 1] + e);
        for (int r = 0; r < few; r++) {
            even[r] += first * w->p[(row + r) * FKP_GEMM_STRIDE + j];
            odd[r] += second * w->p[(row + r) * FKP_GEMM_STRIDE + j + 1];
        }
    }
    for (int r = 0; r < few; r++) {
        if (j < count) even[r] += fkp_v_load(a->v->data, dtype, at[j] + e) * w->p[(row + r) * FKP_GEMM_STRIDE + j];
        fkp_v_store_f32(sums + r * FKP_GEMM_PANEL, even[r] + odd[r]);
    }
}

static inline __attribute__((always_inline)) void attn_few_block(const paged_attention *a, fk_dtype dtype, const attn_task *task,
                                                                 attn_work *w, int64_t first, int count)
{
    int64_t at[ATTN_KEYS];
    for (int j = 0; j < (int)attn_round_up(count, FKP_LANES); j++) /* past the end: the last key again, masked later */
        at[j] = attn_cache_offset(a, a->k, task, first + (j < count ? j : count - 1));
    for (int j = 0; j < count; j += FKP_LANES) attn_few_scores(a, dtype, task, w, at + j, j);
    attn_softmax_rows(a, task, w, first, count);
    for (int j = 0; j < count; j++) at[j] = attn_cache_offset(a, a->v, task, first + j);
    for (int64_t e = 0; e < a->v->shape[3]; e += FKP_LANES)
        for (int r = 0; r < task->rows; r += 4) {
            int few = task->rows - r < 4 ? task->rows - r : 4;
            if (few == 4) attn_few_values(a, dtype, 4, task, w, at, count, r, e);
            else if (few == 3) attn_few_values(a, dtype, 3, task, w, at, count, r, e);
            else if (few == 2) attn_few_values(a, dtype, 2, task, w, at, count, r, e);
            else attn_few_values(a, dtype, 1, task, w, at, count, r, e);
        }
}

/* Fills w->sums, largest and total as attn_run does. */
static inline void attn_few_run(const paged_attention *a, const attn_task *task, attn_work *w)
{
    attn_start(a, task, w);
    for (int64_t first = task->key_begin; first < task->key_end; first += ATTN_KEYS) {
        int count = task->key_end - first < ATTN_KEYS ? (int)(task->key_end - first) : ATTN_KEYS;
        if (a->k->dtype == FK_F32) attn_few_block(a, FK_F32, task, w, first, count);
        else if (a->k->dtype == FK_BF16) attn_few_block(a, FK_BF16, task, w, first, count);
        else attn_few_block(a, FK_F16, task, w, first, count);
    }
}

#endif
