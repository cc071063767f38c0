/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU's gate for float32, bfloat16 and float16. A row is converted to float in pieces that stay in the first-level cache;
 * the arithmetic runs over float vectors that the compiler maps to the machine's widest registers: e^x by splitting off the
 * power of two and a polynomial of degree 6 (relative error below 1e-6). */
#include <fk/candidate.h>

#define PIECE 512 /* floats: three pieces are 6 KiB */

typedef const fk_silu_and_mul_args *args_t;

/* One register: compilers take wider vectors apart, some operations down to single elements. */
#if defined(__AVX512F__)
#define WIDE 16
#elif defined(__AVX2__)
#define WIDE 8
#else
#define WIDE 4
#endif
typedef float wide __attribute__((vector_size(WIDE * 4)));
typedef int32_t wide_int __attribute__((vector_size(WIDE * 4)));

static inline wide exp_wide(wide x)
{
    wide_int low = x < -87.0f, high = x > 88.0f; /* all ones where true */
    x = (wide)(((wide_int)x & ~low & ~high) | ((wide_int)((wide){0} - 87.0f) & low) | ((wide_int)((wide){0} + 88.0f) & high));
    wide shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: rounds to an integer in the low bits */
    wide n = shifted - 12582912.0f;
    wide r = x - n * 0.693145752f - n * 1.42860677e-6f;
    wide p = 1 + r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720))))));
    return p * (wide)(((wide_int)shifted + 127) << 23);
}

/* out[i] = silu(gate[i]) * value[i] for n elements, a multiple of WIDE; out may be gate. */
static void gate_values(float *out, const float *gate, const float *value, int64_t n)
{
    for (int64_t i = 0; i < n; i += WIDE) {
        wide g, v;
        memcpy(&g, gate + i, sizeof g);
        memcpy(&v, value + i, sizeof v);
        g = g * v / (1 + exp_wide(-g));
        memcpy(out + i, &g, sizeof g);
    }
}

static void load(float *dst, const void *src, fk_dtype dtype, int64_t at, int64_t n)
{
    const uint16_t *half = (const uint16_t *)src + at;
    if (dtype == FK_F32) memcpy(dst, (const float *)src + at, (size_t)n * sizeof *dst);
    else if (dtype == FK_BF16) for (int64_t i = 0; i < n; i++) dst[i] = fk_f32_from_bf16(half[i]);
    else for (int64_t i = 0; i < n; i++) dst[i] = fk_f32_from_f16(half[i]);
}

static void store(void *dst, fk_dtype dtype, int64_t at, const float *src, int64_t n)
{
    uint16_t *half = (uint16_t *)dst + at;
    if (dtype == FK_F32) memcpy((float *)dst + at, src, (size_t)n * sizeof *src);
    else if (dtype == FK_BF16) for (int64_t i = 0; i < n; i++) half[i] = fk_bf16_from_f32(src[i]);
    else for (int64_t i = 0; i < n; i++) half[i] = fk_f16_from_f32(src[i]);
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    args_t a = (args_t)user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->result, &rows, &d);
    for (int64_t r = begin; r < end; r++) {
        int64_t at = 0;
        if (a->input->dtype == FK_F32) { /* whole vectors need no piece */
            const float *row = FK_PTR(const float, a->input) + r * in_stride;
            at = d / WIDE * WIDE;
            gate_values(FK_PTR(float, a->result) + r * out_stride, row, row + d, at);
        }
        for (; at < d; at += PIECE) {
            float gate[PIECE], value[PIECE];
            int64_t n = d - at < PIECE ? d - at : PIECE, whole = (n + WIDE - 1) / WIDE * WIDE;
            load(gate, a->input->data, a->input->dtype, r * in_stride + at, n);
            load(value, a->input->data, a->input->dtype, r * in_stride + d + at, n);
            for (int64_t i = n; i < whole; i++) gate[i] = value[i] = 0; /* computed with the rest, not stored */
            gate_values(gate, gate, value, whole);
            store(a->result->data, a->result->dtype, r * out_stride + at, gate, n);
        }
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
