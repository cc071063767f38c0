/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding, the specification. For a pair (x, y) of features and the cosine c and sine s of its position:
 * x' = x c - y s, y' = y c + x s, in double with one rounding each (production rounds c and s to the storage dtype first:
 * they come in the cache's dtype here). Features from rot_dim on stay as they are. */
#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"
#include "ops/rotary/cos_sin_cache.h"

/* Turns all heads of token t. */
static void rotate(const fk_tensor *heads, int64_t t, int64_t position, const fk_rotary_emb_args *a)
{
    int64_t half = a->cos_sin_cache->shape[1] / 2, num_heads = heads->shape[1] / a->head_size;
    for (int64_t h = 0; h < num_heads; h++)
        for (int64_t i = 0; i < half; i++) {
            double c = fk_load_element(fkp_at2(a->cos_sin_cache, position, i), a->cos_sin_cache->dtype);
            double s = fk_load_element(fkp_at2(a->cos_sin_cache, position, half + i), a->cos_sin_cache->dtype);
            void *first = fkp_at2(heads, t, h * a->head_size + (a->is_neox ? i : 2 * i));
            void *second = fkp_at2(heads, t, h * a->head_size + (a->is_neox ? half + i : 2 * i + 1));
            double x = fk_load_element(first, heads->dtype), y = fk_load_element(second, heads->dtype);
            fk_store_element(first, heads->dtype, x * c - y * s);
            fk_store_element(second, heads->dtype, y * c + x * s);
        }
}

static fk_status reference(fk_ctx *ctx, const fk_rotary_emb_args *a)
{
    int64_t num_tokens = a->positions->shape[0], num_positions = a->cos_sin_cache->shape[0];
    for (int64_t t = 0; t < num_tokens; t++) {
        int64_t position = fkp_int1(a->positions, t);
        if (position < 0 || position >= num_positions)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "positions[%lld] is %lld, outside [0, %lld)", (long long)t,
                               (long long)position, (long long)num_positions);
        rotate(a->query, t, position, a);
        if (a->key) rotate(a->key, t, position, a);
    }
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_rotary_emb_args *a)
{
    int64_t rot_dim = a->cos_sin_cache->shape[1];
    if (a->head_size > 0 && rot_dim % 2 == 0 && rot_dim <= a->head_size) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cos_sin_cache has %lld columns: wanted an even number up to head_size, %lld",
                       (long long)rot_dim, (long long)a->head_size);
}

static fk_cost cost(const fk_rotary_emb_args *a)
{
    double t = (double)a->positions->shape[0], rows = (double)a->cos_sin_cache->shape[0];
    double rot_dim = (double)a->cos_sin_cache->shape[1];
    double heads = (double)(a->query->shape[1] + (a->key ? a->key->shape[1] : 0)) / (double)a->head_size;
    double turned = t * heads * rot_dim, size = fk_dtype_bits(a->query->dtype) / 8.0;
    return (fk_cost){.read_bytes = turned * size + (double)fk_tensor_nbytes(a->positions) +
                                   (t < rows ? t : rows) * rot_dim * fk_dtype_bits(a->cos_sin_cache->dtype) / 8.0,
                     .write_bytes = turned * size,
                     .flops = 3 * turned};
}

/* Consecutive positions, then random ones; the last row of the table among them. */
static void fill(fk_random *random, const fk_rotary_emb_args *a)
{
    int64_t t = a->positions->shape[0], p = a->cos_sin_cache->shape[0];
    for (int64_t i = 0; i < t; i++)
        fkp_set_int(a->positions, fkp_at1(a->positions, i), i == 0 ? p - 1 : i < t / 2 ? i % p : fkp_random_below(random, p));
    fill_cos_sin_cache(a->cos_sin_cache);
}

static const char *const cases[] = {
    "T=0 H=2 K=1 head_size=8 P=4 R=8 is_neox=True",
    "T=1 H=1 K=1 head_size=2 P=3 R=2 is_neox=False",
    "T=3 H=3 K=1 head_size=18 P=9 R=18 is_neox=True",
    "T=5 H=4 K=2 head_size=16 P=40 R=8 is_neox=True",
    "T=5 H=4 K=2 head_size=16 P=40 R=12 is_neox=False cos_sin_cache=f32",
    "T=7 H=9 K=3 head_size=64 P=300 R=64 is_neox=True cos_sin_cache=f32",
    "T=2 H=32 K=8 head_size=128 P=70 R=128 is_neox=True positions=i32",
    "T=4 H=3 head_size=20 P=10 R=20 is_neox=False key=absent",
    NULL};

#define FK_OP_DEF "rotary/rotary_emb.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
