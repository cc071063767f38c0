/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling, the specification: core/sampling.h says what is computed, this file does it by sorting. Cases left open by the
 * production function: a NaN anywhere in the row gives -1; a temperature that is not above 0 gives the largest logit, of
 * equal ones the lowest index; infinite logits share the probability; without any finite logit all tokens do. */
#include <stdlib.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"
#include "core/sampling.h"

typedef struct token {
    uint64_t order, weight;
} token;

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const token *)a)->order, y = ((const token *)b)->order;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* `sorted` has room for the row. */
static int64_t sample_row(const fk_sample_args *a, int64_t b, token *sorted)
{
    int64_t v = a->logits->shape[1];
    float z_max = -INFINITY;
    for (int64_t i = 0; i < v; i++) {
        float z = (float)fk_load_element(fkp_at2(a->logits, b, i), a->logits->dtype);
        if (isnan(z)) return -1;
        if (z > z_max) z_max = z;
    }
    float temperature = (float)fk_load_element(fkp_at1(a->temperature, b), FK_F32);
    float top_p = (float)fk_load_element(fkp_at1(a->top_p, b), FK_F32);
    for (int64_t i = 0; i < v; i++) {
        float z = (float)fk_load_element(fkp_at2(a->logits, b, i), a->logits->dtype);
        if (!(temperature > 0) && z == z_max) return i;
        sorted[i] = (token){fkp_sample_order(z, (uint32_t)i), fkp_sample_weight(fkp_sample_distance(z, z_max, temperature))};
    }
    qsort(sorted, (size_t)v, sizeof *sorted, by_order);

    uint64_t least = fkp_sample_floor((float)fk_load_element(fkp_at1(a->min_p, b), FK_F32));
    int64_t k = fkp_int1(a->top_k, b), above = 0;
    while (above < v && sorted[above].weight >= least) above++;
    if (k <= 0 || k > above) k = above;
    uint64_t sum = 0;
    for (int64_t i = 0; i < k; i++) sum += sorted[i].weight;
    uint64_t cut = fkp_sample_cut(top_p, sum), kept = 0;
    uint64_t last = 0; /* order of the last token that stays */
    for (int64_t i = 0; i < k && (i == 0 || kept < cut); i++) {
        kept += sorted[i].weight;
        last = sorted[i].order;
    }

    uint64_t target = fkp_sample_target(fkp_sample_random(fkp_int1(a->seed, b), fkp_int1(a->offset, b)), kept);
    uint64_t running = 0;
    for (int64_t i = 0; i < v; i++) {
        float z = (float)fk_load_element(fkp_at2(a->logits, b, i), a->logits->dtype);
        if (fkp_sample_order(z, (uint32_t)i) < last) continue;
        running += fkp_sample_weight(fkp_sample_distance(z, z_max, temperature));
        if (running > target) return i;
    }
    return -1; /* not reached: running ends at kept, above target */
}

static fk_status reference(fk_ctx *ctx, const fk_sample_args *a)
{
    int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    token *sorted = fk_ctx_scratch(ctx, (size_t)v * sizeof *sorted);
    if (!sorted) return fk_ctx_status(ctx);
    for (int64_t b = 0; b < rows; b++) fkp_set_int(a->output, fkp_at1(a->output, b), sample_row(a, b, sorted));
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_sample_args *a)
{
    int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    if (rows == 0 || (v > 0 && v <= 1 << 23)) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "logits have %lld columns, wanted 1 to %d", (long long)v, 1 << 23);
}

static fk_cost cost(const fk_sample_args *a)
{
    double b = (double)a->logits->shape[0];
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->logits) + b * (4 + 4 + 8 + 8 + 4 + 4), .write_bytes = 8 * b};
}

/* Rows in turn: greedy, plain, top-k, top-p, both, min-p, all three; then at random. Scaled up, so that the distribution has a head. */
static void fill(fk_random *random, const fk_sample_args *a)
{
    int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    for (int64_t b = 0; b < rows; b++) {
        int64_t style = b < 7 ? b : fkp_random_below(random, 7);
        bool cut_k = style == 2 || style == 4 || style == 6, cut_p = style == 3 || style == 4 || style == 6;
        fkp_set_int(a->top_k, fkp_at1(a->top_k, b), cut_k ? 1 + fkp_random_below(random, v < 50 ? v : 50) : 0);
        fk_store_element(fkp_at1(a->top_p, b), FK_F32, cut_p ? fkp_random_uniform(random) : 1);
        fk_store_element(fkp_at1(a->temperature, b), FK_F32, style == 0 ? 0 : 0.5 + fkp_random_uniform(random));
        fk_store_element(fkp_at1(a->min_p, b), FK_F32, style >= 5 ? 0.3 * fkp_random_uniform(random) : 0);
        fkp_set_int(a->seed, fkp_at1(a->seed, b), (int64_t)fkp_random_u64(random));
        fkp_set_int(a->offset, fkp_at1(a->offset, b), fkp_random_below(random, 1 << 20));
        for (int64_t i = 0; i < v; i++) {
            void *z = fkp_at2(a->logits, b, i);
            fk_store_element(z, a->logits->dtype, 3 * fk_load_element(z, a->logits->dtype));
        }
    }
}

static const char *const cases[] = {"B=0 V=10", "B=5 V=1", "B=9 V=7", "B=16 V=63", "B=7 V=1000", "B=6 V=49152", "B=5 V=128256",
                                    NULL};

#define FK_OP_DEF "sampling/sample.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
