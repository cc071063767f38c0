/* SPDX-License-Identifier: Apache-2.0 */
/* Attention without a cache, the specification: scores and probabilities in double, one rounding at the end. A float mask
 * may hold minus infinity; a bool mask's False is minus infinity. */
#include <fk/ops.h>

#include "ops/attention/dense_mask.h"
#include "ops/attention/paged_attention.h"

/* Score of query t with key j in head h of sequence b; minus infinity where it is masked. */
static double score_at(const fk_dense_attention_args *a, int64_t b, int64_t h, int64_t t, int64_t j)
{
    int64_t kv_head = h / (a->query->shape[1] / a->key->shape[1]);
    double score = 0, scale = a->scale != 0 ? (double)a->scale : 1 / sqrt((double)a->query->shape[3]);
    if (a->is_causal && j > t) return -INFINITY;
    for (int64_t e = 0; e < a->query->shape[3]; e++)
        score += fk_load_element(fkp_at4(a->query, b, h, t, e), a->query->dtype) *
                 fk_load_element(fkp_at4(a->key, b, kv_head, j, e), a->key->dtype);
    score *= scale;
    if (!a->attn_mask) return score;
    fk_tensor mask = dense_mask(a);
    double m = fk_load_element(fkp_at4(&mask, b, h, t, j), mask.dtype);
    return mask.dtype == FK_BOOL ? (m != 0 ? score : -INFINITY) : score + m;
}

static void attend(const fk_dense_attention_args *a, int64_t b, int64_t h, int64_t t, double *p)
{
    int64_t keys = a->key->shape[2], kv_head = h / (a->query->shape[1] / a->key->shape[1]);
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        p[j] = score_at(a, b, h, t, j);
        if (p[j] > largest) largest = p[j];
    }
    for (int64_t j = 0; j < keys; j++) sum += p[j] = largest == -INFINITY ? 0 : exp(p[j] - largest);
    for (int64_t e = 0; e < a->output->shape[3]; e++) {
        double value = 0;
        for (int64_t j = 0; j < keys; j++) value += p[j] * fk_load_element(fkp_at4(a->value, b, kv_head, j, e), a->value->dtype);
        fk_store_element(fkp_at4(a->output, b, h, t, e), a->output->dtype, sum > 0 ? value / sum : 0);
    }
}

static fk_status reference(fk_ctx *ctx, const fk_dense_attention_args *a)
{
    double *p = fk_ctx_scratch(ctx, sizeof *p * (size_t)(a->key->shape[2] + 1));
    if (!p) return fk_ctx_status(ctx);
    for (int64_t b = 0; b < a->query->shape[0]; b++)
        for (int64_t h = 0; h < a->query->shape[1]; h++)
            for (int64_t t = 0; t < a->query->shape[2]; t++) attend(a, b, h, t, p);
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_dense_attention_args *a)
{
    int64_t heads = a->query->shape[1], kv_heads = a->key->shape[1];
    if (a->enable_gqa ? kv_heads == 0 || heads % kv_heads != 0 : heads != kv_heads)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld query heads with %lld key heads: wanted %s", (long long)heads, (long long)kv_heads,
                           a->enable_gqa ? "a multiple" : "as many, or enable_gqa");
    if (!a->attn_mask) return FK_OK;
    if (a->is_causal) return fk_ctx_fail(ctx, FK_ERROR_INVALID, "attn_mask and is_causal are both given");
    if (a->attn_mask->dtype != FK_BOOL && a->attn_mask->dtype != FK_F32 && a->attn_mask->dtype != a->query->dtype)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "attn_mask is %s, wanted bool, f32 or the query's %s", fk_dtype_name(a->attn_mask->dtype),
                           fk_dtype_name(a->query->dtype));
    for (int i = 0; i < 3; i++)
        if (a->attn_mask->shape[i] != 1 && a->attn_mask->shape[i] != a->query->shape[i])
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "attn_mask has %lld in dim %d, wanted 1 or %lld", (long long)a->attn_mask->shape[i], i,
                               (long long)a->query->shape[i]);
    return FK_OK;
}

static fk_cost cost(const fk_dense_attention_args *a)
{
    double rows = (double)(a->query->shape[0] * a->query->shape[1]), t = (double)a->query->shape[2], u = (double)a->key->shape[2];
    double pairs = t * u;
    if (a->is_causal) pairs = t <= u ? t * (t + 1) / 2 : u * (u + 1) / 2 + (t - u) * u;
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->query) + (double)fk_tensor_nbytes(a->key) +
                                   (double)fk_tensor_nbytes(a->value) + (a->attn_mask ? (double)fk_tensor_nbytes(a->attn_mask) : 0),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = 4 * rows * pairs * (double)a->query->shape[3]};
}

/* A mask hides every third key or so and, of two and more rows, all keys of one. */
static void fill(fk_random *random, const fk_dense_attention_args *a)
{
    paged_limit(a->query);
    paged_limit(a->key);
    const fk_tensor *mask = a->attn_mask;
    if (!mask) return;
    int64_t n = fk_tensor_numel(mask), keys = mask->shape[3], rows = keys > 0 ? n / keys : 0;
    int64_t blind = rows > 1 ? fkp_random_below(random, rows) : -1;
    for (int64_t i = 0; i < n; i++) {
        bool hidden = i / keys == blind || (i % keys > 0 && fkp_random_below(random, 3) == 0);
        double added = hidden ? -INFINITY : fkp_random_normal(random);
        fk_store_element(fk_tensor_at(mask, i), mask->dtype, mask->dtype == FK_BOOL ? !hidden : added);
    }
}

#define PLAIN " attn_mask=absent is_causal=False scale=0"
static const char *const cases[] = {
    "B=0 H=2 K=2 T=3 U=3 E=8 M=1 N=1 R=1" PLAIN,
    "B=2 H=2 K=2 T=3 U=0 E=8 M=1 N=1 R=1" PLAIN,
    "B=1 H=1 K=1 T=2 U=2 E=1 M=1 N=1 R=1" PLAIN,
    "B=2 H=3 K=3 T=17 U=17 E=32 M=1 N=1 R=1" PLAIN,
    "B=2 H=4 K=2 T=33 U=65 E=64 M=1 N=1 R=1 enable_gqa=True" PLAIN,
    "B=1 H=9 K=3 T=50 U=50 E=64 M=1 N=1 R=1 enable_gqa=True attn_mask=absent is_causal=True scale=0",
    "B=2 H=2 K=2 T=9 U=21 E=15 M=1 N=1 R=1 attn_mask=absent is_causal=True scale=0.3",
    "B=1 H=2 K=2 T=70 U=20 E=80 M=1 N=1 R=1 attn_mask=absent is_causal=True scale=0",
    "B=2 H=4 K=4 T=18 U=67 E=32 M=2 N=1 R=1 attn_mask=bool scale=0",
    "B=2 H=4 K=2 T=19 U=40 E=128 M=2 N=4 R=19 attn_mask=bool scale=0 enable_gqa=True",
    "B=3 H=4 K=1 T=20 U=70 E=48 M=1 N=4 R=20 attn_mask=f32 scale=0 enable_gqa=True",
    "B=2 H=2 K=2 T=5 U=129 E=64 M=2 N=1 R=5 scale=-0.2",
    NULL};

#define FK_OP_DEF "attention/dense_attention.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
