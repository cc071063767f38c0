/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on the CPU where each sequence has tensors of its own (a batch of dense tensors, a list of pages): units of work
 * are blocks of rows with a range of keys (paged_attention_cpu.h), dealt to the threads in turn. Units that share their rows
 * stand one after another and are joined at the end. */
#ifndef FK_OPS_ATTENTION_UNITS_CPU_H
#define FK_OPS_ATTENTION_UNITS_CPU_H

#include "core/threads.h"
#include "ops/attention/paged_attention_cpu.h"

/* One sequence: `attention` points to the tensors beside it; out [T, H, E]. */
typedef struct attn_sequence {
    paged_attention attention;
    fk_tensor q, k, v, out, mask, block_table;
} attn_sequence;

typedef struct attn_unit {
    const attn_sequence *sequence;
    attn_task task; /* its sequence number is 0, the row of block_table */
    int64_t splits; /* units from this one on that share its rows; 0 in all but the first */
    float *partial; /* NULL where the rows are not split: [row][padded E + 2]: sums, largest, total */
} attn_unit;

typedef struct attn_units {
    attn_unit *units;
    int64_t count;
    int parts;
    float *work;
} attn_units;

/* Row r of a unit in its sequence's output. */
static inline int64_t attn_unit_output(const attn_unit *u, int r)
{
    const fk_tensor *out = &u->sequence->out;
    int64_t group = out->shape[1] / u->sequence->k.shape[2], row = u->task.first_row + r;
    return (u->task.first_token + row / group) * out->strides[0] + (u->task.kv_head * group + row % group) * out->strides[1];
}

static inline void attn_unit_store(const attn_unit *u, int r, float total, const float *sums, int64_t panel_stride)
{
    const fk_tensor *out = &u->sequence->out;
    int64_t at = attn_unit_output(u, r), features = out->shape[2], e = 0;
    float inverse = total == 0 ? 0 : 1 / total; /* a row that sees no key gives zeros */
#define ATTN_SUM(e) (sums + (e) / FKP_GEMM_PANEL * panel_stride + (e) % FKP_GEMM_PANEL)
    for (; e + FKP_LANES <= features; e += FKP_LANES)
        fkp_v_store(out->data, out->dtype, at + e, fkp_v_load_f32(ATTN_SUM(e)) * inverse);
    for (; e < features; e++) fkp_s_store(out->data, out->dtype, at + e, *ATTN_SUM(e) * inverse);
#undef ATTN_SUM
}

static inline void attn_unit_run(const attn_unit *u, attn_work *w)
{
    const paged_attention *a = &u->sequence->attention;
    int64_t padded = attn_padded(a), rows = attn_round_up(u->task.rows, FKP_GEMM_COLUMNS);
    if (attn_few(a, &u->task)) attn_few_run(a, &u->task, w);
    else attn_run(a, &u->task, w);
    for (int r = 0; r < u->task.rows; r++) {
        if (!u->partial) {
            attn_unit_store(u, r, w->total[r], attn_sum(&u->task, w, r, 0), rows * FKP_GEMM_PANEL);
            continue;
        }
        float *to = u->partial + r * (padded + 2);
        for (int64_t e = 0; e < padded; e += FKP_LANES) fkp_v_store_f32(to + e, fkp_v_load_f32(attn_sum(&u->task, w, r, e)));
        to[padded] = w->largest[r];
        to[padded + 1] = w->total[r];
    }
}

/* Joins the splits of the rows that `u` begins; its own partial rows hold the result on the way. */
static inline void attn_unit_join(attn_unit *u)
{
    int64_t padded = attn_padded(&u->sequence->attention);
    for (int r = 0; r < u->task.rows; r++) {
        float largest = -INFINITY, total = 0, *sum = u->partial + r * (padded + 2);
        for (int64_t s = 0; s < u->splits; s++) {
            float other = u[s].partial[r * (padded + 2) + padded];
            if (other > largest) largest = other;
        }
        if (largest == -INFINITY) largest = 0; /* no key: every factor and every sum is 0 */
        for (int64_t s = 0; s < u->splits; s++) {
            const float *from = u[s].partial + r * (padded + 2);
            float factor = fkp_s_exp(from[padded] - largest);
            total += factor * from[padded + 1];
            for (int64_t e = 0; e < padded; e += FKP_LANES) {
                fkp_vf x = fkp_v_load_f32(from + e) * factor;
                fkp_v_store_f32(sum + e, s == 0 ? x : fkp_v_load_f32(sum + e) + x);
            }
        }
        attn_unit_store(u, r, total, sum, FKP_GEMM_PANEL);
    }
}

static inline void attn_units_part(void *user, int64_t begin, int64_t end)
{
    const attn_units *job = user;
    const paged_attention *first = &job->units[0].sequence->attention;
    for (int64_t p = begin; p < end; p++) {
        attn_work w = attn_work_in(first, job->work + p * attn_work_floats(first));
        for (int64_t i = p; i < job->count; i += job->parts) attn_unit_run(&job->units[i], &w);
    }
}

static inline void attn_units_join(void *user, int64_t begin, int64_t end)
{
    const attn_units *job = user;
    for (int64_t i = begin; i < end; i++)
        if (job->units[i].splits > 1) attn_unit_join(&job->units[i]);
}

/* Floats of a unit's partial result. */
static inline int64_t attn_partial_floats(const paged_attention *a)
{
    return ATTN_ROWS * (attn_padded(a) + 2);
}

/* Runs the units, all with the same head size. Those of split rows need `partial` set. */
static inline fk_status attn_units_run(fk_ctx *ctx, attn_unit *units, int64_t count, bool split)
{
    attn_units job = {.units = units, .count = count};
    if (count == 0 || units[0].sequence->q.shape[2] == 0) return FK_OK;
    job.parts = fk_ctx_threads(ctx) < count ? fk_ctx_threads(ctx) : (int)count;
    job.work = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(job.parts * attn_work_floats(&units[0].sequence->attention)));
    if (!job.work) return fk_ctx_status(ctx);
    fkp_parallel_for(job.parts, job.parts, 1, attn_units_part, &job);
    if (split) fkp_parallel_for(fk_ctx_threads(ctx), count, 16, attn_units_join, &job);
    return FK_OK;
}

#endif
