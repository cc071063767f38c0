/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding of queries and keys in place. The cosines and sines of a token are read once for all its heads, as float;
 * pairs stand in halves (neox) or side by side. */
#include <fk/candidate.h>

#define MAX_PAIRS 256 /* rot_dim up to 512 */

typedef const fk_rotary_emb_args *args_t;

static inline float load(const void *p, fk_dtype dtype, int64_t i)
{
    return dtype == FK_F32    ? ((const float *)p)[i]
           : dtype == FK_BF16 ? fk_f32_from_bf16(((const uint16_t *)p)[i])
                              : fk_f32_from_f16(((const uint16_t *)p)[i]);
}

static inline void store(void *p, fk_dtype dtype, int64_t i, float x)
{
    if (dtype == FK_F32) ((float *)p)[i] = x;
    else if (dtype == FK_BF16) ((uint16_t *)p)[i] = fk_bf16_from_f32(x);
    else ((uint16_t *)p)[i] = fk_f16_from_f32(x);
}

/* All heads of one token; `at` is the offset of its first feature. */
static void rotate(fk_tensor *t, int64_t at, int64_t heads, int64_t head_size, int64_t pairs, bool is_neox, const float *cosine,
                   const float *sine)
{
    for (int64_t h = 0; h < heads; h++, at += head_size) {
        if (is_neox && t->dtype == FK_F32) {
            float *x = (float *)t->data + at, *y = x + pairs;
            for (int64_t i = 0; i < pairs; i++) {
                float u = x[i], v = y[i];
                x[i] = u * cosine[i] - v * sine[i];
                y[i] = v * cosine[i] + u * sine[i];
            }
            continue;
        }
        for (int64_t i = 0; i < pairs; i++) {
            int64_t first = at + (is_neox ? i : 2 * i), second = is_neox ? first + pairs : first + 1;
            float u = load(t->data, t->dtype, first), v = load(t->data, t->dtype, second);
            store(t->data, t->dtype, first, u * cosine[i] - v * sine[i]);
            store(t->data, t->dtype, second, v * cosine[i] + u * sine[i]);
        }
    }
}

static void tokens_part(void *user, int64_t begin, int64_t end)
{
    args_t a = (args_t)user;
    int64_t pairs = a->cos_sin_cache->shape[1] / 2, row = fk_row_stride(a->cos_sin_cache);
    for (int64_t t = begin; t < end; t++) {
        int64_t position = a->positions->dtype == FK_I64 ? ((const int64_t *)a->positions->data)[t * a->positions->strides[0]]
                                                         : ((const int32_t *)a->positions->data)[t * a->positions->strides[0]];
        float cosine[MAX_PAIRS], sine[MAX_PAIRS];
        for (int64_t i = 0; i < pairs; i++) {
            cosine[i] = load(a->cos_sin_cache->data, a->cos_sin_cache->dtype, position * row + i);
            sine[i] = load(a->cos_sin_cache->data, a->cos_sin_cache->dtype, position * row + pairs + i);
        }
        rotate(a->query, t * fk_row_stride(a->query), a->query->shape[1] / a->head_size, a->head_size, pairs, a->is_neox, cosine,
               sine);
        if (a->key)
            rotate(a->key, t * fk_row_stride(a->key), a->key->shape[1] / a->head_size, a->head_size, pairs, a->is_neox, cosine,
                   sine);
    }
}

FK_CANDIDATE(rotary_emb)
{
    if (a->cos_sin_cache->shape[1] / 2 > MAX_PAIRS) return fk_candidate_error("rotary dimension above 512");
    int64_t width = a->query->shape[1] + (a->key ? a->key->shape[1] : 0);
    if (a->positions->shape[0] == 0 || width == 0) return 0;
    fk_candidate_parallel(a->positions->shape[0], 1 + 16384 / width, tokens_part, (void *)(uintptr_t)a);
    return 0;
}
