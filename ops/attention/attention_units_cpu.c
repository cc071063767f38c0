/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention/attention_units_cpu.h"

#include "core/threads.h"
#include "ops/attention/paged_attention_cpu.h"

typedef struct attn_units {
    attn_unit *units;
    int64_t count;
    int parts;
    float *work;
} attn_units;

/* Row r of a unit in the output. */
static int64_t attn_unit_output(const attn_unit *u, int r)
{
    const fk_tensor *out = u->out;
    int64_t group = out->shape[1] / u->attention->k->shape[2], row = u->task.first_row + r;
    return (u->task.first_token + row / group) * out->strides[0] + (u->task.kv_head * group + row % group) * out->strides[1];
}

static void attn_unit_store(const attn_unit *u, int r, float total, const float *sums, int64_t panel_stride)
{
    const fk_tensor *out = u->out;
    int64_t at = attn_unit_output(u, r), features = out->shape[2], e = 0;
    float inverse = total == 0 ? 0 : 1 / total; /* a row that sees no key gives zeros */
#define ATTN_SUM(e) (sums + (e) / FKP_GEMM_PANEL * panel_stride + (e) % FKP_GEMM_PANEL)
    for (; e + FKP_LANES <= features; e += FKP_LANES)
        fkp_v_store(out->data, out->dtype, at + e, fkp_v_load_f32(ATTN_SUM(e)) * inverse);
    for (; e < features; e++) fkp_s_store(out->data, out->dtype, at + e, *ATTN_SUM(e) * inverse);
#undef ATTN_SUM
}

static void attn_unit_run(const attn_unit *u, attn_work *w)
{
    const paged_attention *a = u->attention;
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
static void attn_unit_join(attn_unit *u)
{
    int64_t padded = attn_padded(u->attention);
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

static void attn_units_part(void *user, int64_t begin, int64_t end)
{
    const attn_units *job = user;
    const paged_attention *first = job->units[0].attention;
    for (int64_t p = begin; p < end; p++) {
        attn_work w = attn_work_in(first, job->work + p * attn_work_floats(first));
        for (int64_t i = p; i < job->count; i += job->parts) attn_unit_run(&job->units[i], &w);
    }
}

static void attn_units_join(void *user, int64_t begin, int64_t end)
{
    const attn_units *job = user;
    for (int64_t i = begin; i < end; i++)
        if (job->units[i].splits > 1) attn_unit_join(&job->units[i]);
}

/* Memory for the partial results of shared rows. */
static fk_status attn_units_partial(fk_ctx *ctx, attn_unit *units, int64_t count)
{
    int64_t row_floats = attn_padded(units[0].attention) + 2, floats = 0;
    for (int64_t i = 0; i < count; i++)
        if (units[i].splits > 1) floats += units[i].splits * units[i].task.rows * row_floats;
    if (floats == 0) return FK_OK;
    float *partial = fk_ctx_scratch(ctx, sizeof(float) * (size_t)floats);
    if (!partial) return fk_ctx_status(ctx);
    for (int64_t i = 0; i < count; i++)
        for (int64_t s = 0; units[i].splits > 1 && s < units[i].splits; s++) {
            units[i + s].partial = partial;
            partial += units[i].task.rows * row_floats;
        }
    return FK_OK;
}

fk_status attn_units_run(fk_ctx *ctx, attn_unit *units, int64_t count)
{
    if (count == 0 || units[0].attention->q->shape[2] == 0) return FK_OK;
    attn_units job = {.units = units, .count = count};
    FK_TRY(attn_units_partial(ctx, units, count));
    job.parts = fk_ctx_threads(ctx) < count ? fk_ctx_threads(ctx) : (int)count;
    job.work = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(job.parts * attn_work_floats(units[0].attention)));
    if (!job.work) return fk_ctx_status(ctx);
    fkp_parallel_for(job.parts, job.parts, 1, attn_units_part, &job);
    fkp_parallel_for(fk_ctx_threads(ctx), count, 16, attn_units_join, &job);
    return FK_OK;
}
