/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU's gate for float32, bfloat16 and float16. A row is converted to float in pieces that stay in the first-level cache;
 * the arithmetic is written so that the compiler vectorises it for the machine at hand: e^x by splitting off the power of two
 * and a polynomial of degree 6 (relative error below 1e-6). */
#include <fk/candidate.h>

#define PIECE 512 /* floats: three pieces are 6 KiB */

typedef const fk_silu_and_mul_args *args_t;

static inline float exp_fast(float x)
{
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    float n = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: rounds to an integer in the low bits */
    int32_t power;
    memcpy(&power, &n, sizeof power);
    n -= 12582912.0f;
    float r = x - n * 0.693145752f - n * 1.42860677e-6f;
    float p = 1 + r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720))))));
    power = (int32_t)((uint32_t)(power + 127) << 23);
    float scale;
    memcpy(&scale, &power, sizeof scale);
    return p * scale;
}

static void load(float *dst, const void *src, fk_dtype dtype, int64_t at, int64_t n)
{
    const uint16_t *half = (const uint16_t *)src + at;
    if (dtype == FK_F32) memcpy(dst, (const float *)src + at, (size_t)n * sizeof *dst);
    else if (dtype == FK_BF16) for (int64_t i = 0; i < n; i++) dst[i] = fkp_f32_from_bf16(half[i]);
    else for (int64_t i = 0; i < n; i++) dst[i] = fkp_f32_from_f16(half[i]);
}

static void store(void *dst, fk_dtype dtype, int64_t at, const float *src, int64_t n)
{
    uint16_t *half = (uint16_t *)dst + at;
    if (dtype == FK_F32) memcpy((float *)dst + at, src, (size_t)n * sizeof *src);
    else if (dtype == FK_BF16) for (int64_t i = 0; i < n; i++) half[i] = fkp_bf16_from_f32(src[i]);
    else for (int64_t i = 0; i < n; i++) half[i] = fkp_f16_from_f32(src[i]);
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    args_t a = (args_t)user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->result, &rows, &d);
    for (int64_t r = begin; r < end; r++)
        for (int64_t at = 0; at < d; at += PIECE) {
            float gate[PIECE], value[PIECE];
            int64_t n = d - at < PIECE ? d - at : PIECE;
            load(gate, a->input->data, a->input->dtype, r * in_stride + at, n);
            load(value, a->input->data, a->input->dtype, r * in_stride + d + at, n);
            for (int64_t i = 0; i < n; i++) gate[i] = gate[i] * value[i] / (1 + exp_fast(-gate[i]));
            store(a->result->data, a->result->dtype, r * out_stride + at, gate, n);
        }
}

FK_CANDIDATE(silu_and_mul)
{
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    fk_candidate_parallel(rows, 1 + 16384 / d, rows_part, (void *)(uintptr_t)a);
    return 0;
}
