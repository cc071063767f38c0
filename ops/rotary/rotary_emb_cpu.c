/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding on the CPU: vectors over the pairs of a head, tokens split over threads. Neighbouring pairs
 * are taken apart and put together again in registers. */
#include "core/cpu_op.h"
#include "core/simd.h"
#include "core/threads.h"

#define GRAIN_ELEMENTS 8192 /* below this a second thread costs more than it saves */

static int64_t position_at(const fk_tensor *positions, int64_t t)
{
    int64_t at = t * positions->strides[0];
    return positions->dtype == FK_I32 ? ((const int32_t *)positions->data)[at] : ((const int64_t *)positions->data)[at];
}

/* One pair at positions `first` and `second`. */
static void rotate_pair(void *data, fk_dtype dtype, int64_t first, int64_t second, float c, float s)
{
    float x = fkp_s_load(data, dtype, first), y = fkp_s_load(data, dtype, second);
    fkp_s_store(data, dtype, first, x * c - y * s);
    fkp_s_store(data, dtype, second, y * c + x * s);
}

/* The head at element `at`; cos and sin of its position at elements `cos` and `cos + half` of the table. */
static void rotate_head(const fk_tensor *heads, int64_t at, const fk_tensor *table, int64_t cos, int64_t half, bool is_neox)
{
    fk_dtype dtype = heads->dtype;
    void *data = heads->data;
    int64_t i = 0;
    for (; i + FKP_LANES <= half; i += FKP_LANES) {
        int64_t first = is_neox ? at + i : at + 2 * i, second = is_neox ? at + half + i : first + FKP_LANES;
        fkp_vf a = fkp_v_load(data, dtype, first), b = fkp_v_load(data, dtype, second);
        fkp_vf c = fkp_v_load(table->data, table->dtype, cos + i), s = fkp_v_load(table->data, table->dtype, cos + half + i);
        fkp_vf x = is_neox ? a : FKP_V_EVEN(a, b), y = is_neox ? b : FKP_V_ODD(a, b);
        fkp_vf turned_x = x * c - y * s, turned_y = y * c + x * s;
        fkp_v_store(data, dtype, first, is_neox ? turned_x : FKP_V_ZIP_LOW(turned_x, turned_y));
        fkp_v_store(data, dtype, second, is_neox ? turned_y : FKP_V_ZIP_HIGH(turned_x, turned_y));
    }
    for (; i < half; i++)
        rotate_pair(data, dtype, is_neox ? at + i : at + 2 * i, is_neox ? at + half + i : at + 2 * i + 1,
                    fkp_s_load(table->data, table->dtype, cos + i), fkp_s_load(table->data, table->dtype, cos + half + i));
}

static void rotate_token(const fk_rotary_emb_args *a, const fk_tensor *heads, int64_t t)
{
    int64_t num_heads = heads->shape[1] / a->head_size;
    int64_t cos = position_at(a->positions, t) * a->cos_sin_cache->strides[0];
    for (int64_t h = 0; h < num_heads; h++)
        rotate_head(heads, t * heads->strides[0] + h * a->head_size, a->cos_sin_cache, cos, a->cos_sin_cache->shape[1] / 2,
                    a->is_neox);
}

static void tokens_part(void *user, int64_t begin, int64_t end)
{
    const fk_rotary_emb_args *a = user;
    for (int64_t t = begin; t < end; t++) {
        rotate_token(a, a->query, t);
        if (a->key) rotate_token(a, a->key, t);
    }
}

static fk_status run(fk_ctx *ctx, const fk_rotary_emb_args *a)
{
    int64_t tokens = a->positions->shape[0], num_positions = a->cos_sin_cache->shape[0];
    for (int64_t t = 0; t < tokens; t++) {
        int64_t position = position_at(a->positions, t);
        if (position < 0 || position >= num_positions)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "positions[%lld] is %lld, outside [0, %lld)", (long long)t,
                               (long long)position, (long long)num_positions);
    }
    int64_t row = a->query->shape[1] + (a->key ? a->key->shape[1] : 0);
    if (tokens == 0 || row == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), tokens, 1 + GRAIN_ELEMENTS / row, tokens_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_rotary_emb_args *a)
{
    return fk_tensor_has_rows(a->query) && (!a->key || fk_tensor_has_rows(a->key)) && fk_tensor_has_rows(a->cos_sin_cache);
}

FK_CPU_OP_IF(rotary_emb, run, supports);
