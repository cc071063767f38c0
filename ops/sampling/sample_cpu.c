/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling on the CPU, in linear time: core/sampling.h says what is computed. A pass finds the largest logit, a pass lists
 * the tokens with a weight above 0 (a token without weight can neither be drawn nor change a sum); both cuts are found by
 * partitioning around pivots, without sorting. Rows are split over threads. */
#include <math.h>
#include <string.h>

#include "core/cpu_op.h"
#include "core/sampling.h"
#include "core/simd.h"
#include "core/threads.h"

typedef struct token {
    uint64_t order, weight;
} token;

typedef struct sample_job {
    const fk_sample_args *args;
    int parts;
    token *tokens; /* [part][2][V]: in index order, and a copy to partition */
} sample_job;

/* Largest of n logits from `at` on; NaN when there is one. */
static float largest_logit(const fk_tensor *t, int64_t at, int64_t n)
{
    fkp_vf largest = fkp_v_set(-INFINITY);
    fkp_vi nan = {0};
    int64_t i = 0;
    for (; i + FKP_LANES <= n; i += FKP_LANES) {
        fkp_vf z = fkp_v_load(t->data, t->dtype, at + i);
        nan |= z != z;
        largest = fkp_v_larger(z, largest);
    }
    float max = fkp_v_max(largest);
    for (int k = 0; k < FKP_LANES; k++)
        if (nan[k]) return NAN;
    for (; i < n; i++) {
        float z = fkp_s_load(t->data, t->dtype, at + i);
        if (isnan(z)) return NAN;
        if (z > max) max = z;
    }
    return max;
}

static uint64_t middle(uint64_t a, uint64_t b, uint64_t c)
{
    if (a > b) return b > c ? b : a > c ? c : a;
    return a > c ? a : b > c ? c : b;
}

/* Moves the tokens of order `pivot` and above to the front of [begin, end); the first place behind them. */
static int64_t partition(token *t, int64_t begin, int64_t end, uint64_t pivot)
{
    int64_t at = begin;
    for (int64_t i = begin; i < end; i++)
        if (t[i].order >= pivot) {
            token moved = t[i];
            t[i] = t[at];
            t[at++] = moved;
        }
    return at;
}

/* Order of the last token of the shortest prefix, by falling order, that reaches `wanted`: in tokens when `count`, else in
 * weight. At least one token; all when they do not reach it. n is at least 1. */
static uint64_t cut(token *t, int64_t n, bool count, uint64_t wanted)
{
    int64_t begin = 0, end = n;
    while (end - begin > 1) {
        uint64_t pivot = middle(t[begin].order, t[begin + (end - begin) / 2].order, t[end - 1].order);
        int64_t at = partition(t, begin, end, pivot);
        uint64_t sum = 0, lowest = UINT64_MAX;
        int64_t lowest_at = begin;
        for (int64_t i = begin; i < at; i++) {
            sum += count ? 1 : t[i].weight;
            if (t[i].order < lowest) lowest = t[i].order, lowest_at = i;
        }
        if (sum < wanted && at < end) { /* the last one stands behind */
            wanted -= sum;
            begin = at;
        } else {
            /* Inside: without the pivot, unless it is what reaches `wanted`. */
            uint64_t own = count ? 1 : t[lowest_at].weight;
            if (at - begin == 1 || sum - own < wanted) return lowest;
            token moved = t[lowest_at];
            t[lowest_at] = t[at - 1];
            t[at - 1] = moved;
            end = at - 1;
        }
    }
    return t[begin].order;
}

/* The row's token; `all` and `copy` have room for V. */
static int64_t sample_row(const fk_sample_args *a, int64_t b, token *all, token *copy)
{
    const fk_tensor *logits = a->logits;
    int64_t v = logits->shape[1], at = b * logits->strides[0], n = 0;
    float z_max = largest_logit(logits, at, v);
    if (isnan(z_max)) return -1;
    float temperature = ((const float *)a->temperature->data)[b * a->temperature->strides[0]];
    float top_p = ((const float *)a->top_p->data)[b * a->top_p->strides[0]];
    int32_t top_k = ((const int32_t *)a->top_k->data)[b * a->top_k->strides[0]];
    if (!(temperature > 0)) {
        int64_t i = 0;
        while (fkp_s_load(logits->data, logits->dtype, at + i) != z_max) i++;
        return i;
    }
    uint64_t kept = 0, last = 0, least = fkp_sample_floor(((const float *)a->min_p->data)[b * a->min_p->strides[0]]);
    for (int64_t i = 0; i < v; i++) {
        float z = fkp_s_load(logits->data, logits->dtype, at + i);
        uint64_t weight = fkp_sample_weight(fkp_sample_distance(z, z_max, temperature));
        if (weight == 0 || weight < least) continue;
        all[n++] = (token){fkp_sample_order(z, (uint32_t)i), weight};
        kept += weight;
    }
    bool by_count = top_k > 0 && top_k < n, by_weight = top_p < 1;
    if (by_count || by_weight) {
        memcpy(copy, all, (size_t)n * sizeof *all);
        int64_t left = n;
        if (by_count) {
            last = cut(copy, n, true, (uint64_t)top_k);
            left = partition(copy, 0, n, last);
        }
        if (by_weight) {
            uint64_t sum = 0;
            for (int64_t i = 0; i < left; i++) sum += copy[i].weight;
            last = cut(copy, left, false, fkp_sample_cut(top_p, sum));
        }
        kept = 0;
        for (int64_t i = 0; i < n; i++)
            if (all[i].order >= last) kept += all[i].weight;
    }
    int64_t seed = ((const int64_t *)a->seed->data)[b * a->seed->strides[0]];
    int64_t offset = ((const int64_t *)a->offset->data)[b * a->offset->strides[0]];
    uint64_t target = fkp_sample_target(fkp_sample_random(seed, offset), kept), running = 0;
    for (int64_t i = 0; i < n; i++) {
        if (all[i].order < last) continue;
        running += all[i].weight;
        if (running > target) return 0xffffffffu - (uint32_t)all[i].order;
    }
    return -1; /* not reached: running ends at kept, above target */
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const sample_job *job = user;
    int64_t rows = job->args->logits->shape[0], v = job->args->logits->shape[1];
    int64_t *out = job->args->output->data;
    for (int64_t p = begin; p < end; p++) {
        token *all = job->tokens + p * 2 * v;
        for (int64_t b = rows * p / job->parts; b < rows * (p + 1) / job->parts; b++)
            out[b * job->args->output->strides[0]] = sample_row(job->args, b, all, all + v);
    }
}

static fk_status run(fk_ctx *ctx, const fk_sample_args *a)
{
    int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    if (rows == 0) return FK_OK;
    sample_job job = {.args = a, .parts = fk_ctx_threads(ctx) < rows ? fk_ctx_threads(ctx) : (int)rows};
    job.tokens = fk_ctx_scratch(ctx, sizeof(token) * (size_t)(job.parts * 2 * v));
    if (!job.tokens) return fk_ctx_status(ctx);
    fkp_parallel_for(job.parts, job.parts, 1, rows_part, &job);
    return FK_OK;
}

static bool supports(const fk_sample_args *a)
{
    return fk_tensor_has_rows(a->logits);
}

FK_CPU_OP_IF(sample, run, supports);
