/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding of queries and keys in place. The cosines and sines of a token are read once for all its heads; pairs stand in
 * halves (neox) or side by side. */
#include <fk/candidate.h>

#if defined(__AVX512F__)
#define WIDE 16
#elif defined(__AVX__)
#define WIDE 8
#else
#define WIDE 4
#endif
typedef float wide __attribute__((vector_size(WIDE * 4)));

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

static inline wide load_wide(const float *p)
{
    wide v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Float32 halves, the usual case: a vector of pairs of all heads at once, so that cosine and sine stay in registers. */
static void rotate_f32(float *first, int64_t heads, int64_t head_size, int64_t pairs, const float *cosine, const float *sine)
{
    int64_t i = 0;
    for (; i + WIDE <= pairs; i += WIDE) {
        wide c = load_wide(cosine + i), s = load_wide(sine + i);
        for (int64_t h = 0; h < heads; h++) {
            float *x = first + h * head_size + i, *y = x + pairs;
            wide u = load_wide(x), v = load_wide(y), turned_u = u * c - v * s, turned_v = v * c + u * s;
            memcpy(x, &turned_u, sizeof turned_u);
            memcpy(y, &turned_v, sizeof turned_v);
        }
    }
    for (; i < pairs; i++)
        for (int64_t h = 0; h < heads; h++) {
            float *x = first + h * head_size + i, *y = x + pairs, u = *x, v = *y;
            *x = u * cosine[i] - v * sine[i];
            *y = v * cosine[i] + u * sine[i];
        }
}

/* All heads of one token; `at` is the offset of its first feature. */
static void rotate(fk_tensor *t, int64_t at, const fk_rotary_emb_args *a, int64_t pairs, const float *cosine, const float *sine)
{
    int64_t heads = t->shape[1] / a->head_size;
    if (a->is_neox && t->dtype == FK_F32) {
        rotate_f32((float *)t->data + at, heads, a->head_size, pairs, cosine, sine);
        return;
    }
    for (int64_t h = 0; h < heads; h++, at += a->head_size)
        for (int64_t i = 0; i < pairs; i++) {
            int64_t first = at + (a->is_neox ? i : 2 * i), second = a->is_neox ? first + pairs : first + 1;
            float u = load(t->data, t->dtype, first), v = load(t->data, t->dtype, second);
            store(t->data, t->dtype, first, u * cosine[i] - v * sine[i]);
            store(t->data, t->dtype, second, v * cosine[i] + u * sine[i]);
        }
}

static void tokens_part(void *user, int64_t begin, int64_t end)
{
    args_t a = (args_t)user;
    const fk_tensor *table = a->cos_sin_cache;
    int64_t pairs = table->shape[1] / 2, row = fk_row_stride(table);
    for (int64_t t = begin; t < end; t++) {
        int64_t position = a->positions->dtype == FK_I64 ? ((const int64_t *)a->positions->data)[t * a->positions->strides[0]]
                                                         : ((const int32_t *)a->positions->data)[t * a->positions->strides[0]];
        float copies[2 * MAX_PAIRS];
        const float *cosine = copies;
        if (table->dtype == FK_F32) cosine = (const float *)table->data + position * row;
        else
            for (int64_t i = 0; i < 2 * pairs; i++) copies[i] = load(table->data, table->dtype, position * row + i);
        rotate(a->query, t * fk_row_stride(a->query), a, pairs, cosine, cosine + pairs);
        if (a->key) rotate(a->key, t * fk_row_stride(a->key), a, pairs, cosine, cosine + pairs);
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
