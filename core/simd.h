/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of float for CPU kernels, in GCC's vector extension: 16 lanes under AVX-512, 8 under AVX2, 4 otherwise. One
 * source serves all levels. Loads and stores convert from and to the tensor's dtype; arithmetic is float32.
 * expf follows the usual range reduction with a polynomial of degree 6, fitted for the smallest relative error on
 * |x| <= ln(2) / 2 (4e-9): relative error below 1e-7 where the result is normal (tests/test_simd.c). */
#ifndef FK_CORE_SIMD_H
#define FK_CORE_SIMD_H

#include <stdint.h>
#include <string.h>

#include <fk/tensor.h>

#include "core/dtype.h"

#if defined(__AVX512F__)
#define FKP_LANES 16
#elif defined(__AVX2__)
#define FKP_LANES 8
#else
#define FKP_LANES 4
#endif

#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float fkp_vf __attribute__((vector_size(FKP_LANES * 4)));
typedef int32_t fkp_vi __attribute__((vector_size(FKP_LANES * 4)));
typedef uint32_t fkp_vu __attribute__((vector_size(FKP_LANES * 4)));
typedef uint16_t fkp_vh __attribute__((vector_size(FKP_LANES * 2)));

static inline fkp_vf fkp_v_set(float x)
{
    return x - (fkp_vf){0};
}

static inline fkp_vf fkp_v_load_f32(const float *p)
{
    fkp_vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void fkp_v_store_f32(float *p, fkp_vf v)
{
    memcpy(p, &v, sizeof v);
}

static inline fkp_vf fkp_v_load_bf16(const uint16_t *p)
{
#if defined(__AVX512F__)
    fkp_vu u = (fkp_vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)) << 16;
#elif defined(__AVX2__) /* one instruction, where gcc makes four of the conversion below */
    fkp_vu u = (fkp_vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)) << 16;
#else
    fkp_vh h;
    memcpy(&h, p, sizeof h);
    fkp_vu u = __builtin_convertvector(h, fkp_vu) << 16;
#endif
    fkp_vf v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* To nearest even; NaN stays NaN. */
static inline void fkp_v_store_bf16(uint16_t *p, fkp_vf v)
{
    fkp_vu u;
    memcpy(&u, &v, sizeof u);
    fkp_vu rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    fkp_vu quiet = u >> 16 | 0x40u;
    fkp_vu is_nan = (fkp_vu)((fkp_vi)(u & 0x7fffffffu) > (int32_t)0x7f800000);
    fkp_vh h = __builtin_convertvector((quiet & is_nan) | (rounded & ~is_nan), fkp_vh);
    memcpy(p, &h, sizeof h);
}

static inline fkp_vf fkp_v_load_f16(const uint16_t *p)
{
#if defined(__AVX512F__)
    return (fkp_vf)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#elif defined(__F16C__) && FKP_LANES == 8
    return (fkp_vf)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#else
    fkp_vf v;
    for (int i = 0; i < FKP_LANES; i++) v[i] = fk_f32_from_f16(p[i]);
    return v;
#endif
}

static inline void fkp_v_store_f16(uint16_t *p, fkp_vf v)
{
#if defined(__AVX512F__)
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__) && FKP_LANES == 8
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    for (int i = 0; i < FKP_LANES; i++) p[i] = fk_f16_from_f32(v[i]);
#endif
}

/* FKP_LANES elements at position i of an array of `dtype` (F32, F16 or BF16). */
static inline fkp_vf fkp_v_load(const void *p, fk_dtype dtype, int64_t i)
{
    return dtype == FK_F32    ? fkp_v_load_f32((const float *)p + i)
           : dtype == FK_BF16 ? fkp_v_load_bf16((const uint16_t *)p + i)
                              : fkp_v_load_f16((const uint16_t *)p + i);
}

static inline void fkp_v_store(void *p, fk_dtype dtype, int64_t i, fkp_vf v)
{
    if (dtype == FK_F32) fkp_v_store_f32((float *)p + i, v);
    else if (dtype == FK_BF16) fkp_v_store_bf16((uint16_t *)p + i, v);
    else fkp_v_store_f16((uint16_t *)p + i, v);
}

/* One element, for tails. */
static inline float fkp_s_load(const void *p, fk_dtype dtype, int64_t i)
{
    return dtype == FK_F32    ? ((const float *)p)[i]
           : dtype == FK_BF16 ? fk_f32_from_bf16(((const uint16_t *)p)[i])
                              : fk_f32_from_f16(((const uint16_t *)p)[i]);
}

static inline void fkp_s_store(void *p, fk_dtype dtype, int64_t i, float v)
{
    if (dtype == FK_F32) ((float *)p)[i] = v;
    else if (dtype == FK_BF16) ((uint16_t *)p)[i] = fk_bf16_from_f32(v);
    else ((uint16_t *)p)[i] = fk_f16_from_f32(v);
}

static inline fkp_vf fkp_v_select(fkp_vi mask, fkp_vf yes, fkp_vf no)
{
    return (fkp_vf)(((fkp_vi)yes & mask) | ((fkp_vi)no & ~mask));
}

/* Sums and maxima over the lanes by halves: lane i meets lane i + n/2, then i + n/4, ... The order is fixed. */
#if FKP_LANES == 16
#define FKP_V_FOLD(v, op)                                                                                            \
    v = op(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));                  \
    v = op(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));                  \
    v = op(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));                  \
    v = op(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14))
#elif FKP_LANES == 8
#define FKP_V_FOLD(v, op)                                                                                            \
    v = op(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));                                                \
    v = op(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));                                                \
    v = op(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6))
#else
#define FKP_V_FOLD(v, op)                                                                                            \
    v = op(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));                                                            \
    v = op(v, __builtin_shufflevector(v, v, 1, 0, 3, 2))
#endif

static inline fkp_vf fkp_v_add(fkp_vf a, fkp_vf b)
{
    return a + b;
}

/* Lane by lane the larger; b where one is NaN. */
static inline fkp_vf fkp_v_larger(fkp_vf a, fkp_vf b)
{
    return fkp_v_select(a > b, a, b);
}

static inline float fkp_v_sum(fkp_vf v)
{
    FKP_V_FOLD(v, fkp_v_add);
    return v[0];
}

static inline float fkp_v_max(fkp_vf v)
{
    FKP_V_FOLD(v, fkp_v_larger);
    return v[0];
}

/* Interleaves: low halves a0 b0 a1 b1 ..., and high halves. */
#if FKP_LANES == 16
#define FKP_V_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define FKP_V_ZIP_HIGH(a, b)                                                                                         \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif FKP_LANES == 8
#define FKP_V_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define FKP_V_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define FKP_V_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define FKP_V_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Sums of FKP_LANES vectors, lane i that of v[i]; v is used up. Adding the zipped halves of two vectors halves both and
 * leaves them side by side: as many rounds as the lane number has bits. */
static inline fkp_vf fkp_v_sums(fkp_vf v[FKP_LANES])
{
    for (int n = FKP_LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) v[i] = FKP_V_ZIP_LOW(v[i], v[i + n]) + FKP_V_ZIP_HIGH(v[i], v[i + n]);
    return v[0];
}

/* The even and the odd elements of a followed by b. */
#if FKP_LANES == 16
#define FKP_V_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define FKP_V_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#elif FKP_LANES == 8
#define FKP_V_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define FKP_V_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#else
#define FKP_V_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define FKP_V_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#endif

/* Transposes a square of lanes: one round moves the highest bit of the row number to the lowest of the column number, and
 * as many rounds as there are bits exchange the two. */
static inline void fkp_v_transpose(fkp_vf rows[FKP_LANES])
{
    for (int bit = 1; bit < FKP_LANES; bit *= 2) {
        fkp_vf in[FKP_LANES];
        for (int i = 0; i < FKP_LANES; i++) in[i] = rows[i];
        for (int i = 0; i < FKP_LANES / 2; i++) {
            rows[2 * i] = FKP_V_ZIP_LOW(in[i], in[i + FKP_LANES / 2]);
            rows[2 * i + 1] = FKP_V_ZIP_HIGH(in[i], in[i + FKP_LANES / 2]);
        }
    }
}

/* e^x. Below -87.3 the result is 0, above 88.7 infinity; NaN stays NaN. */
static inline fkp_vf fkp_v_exp(fkp_vf x)
{
    const fkp_vf low = fkp_v_set(-87.33654f), high = fkp_v_set(88.72283f);
    fkp_vi below = x < low, above = x > high, is_nan = x != x;
    fkp_vf c = fkp_v_select(below, low, fkp_v_select(above, high, fkp_v_select(is_nan, fkp_v_set(0), x)));
    fkp_vf shifted = c * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to an integer */
    fkp_vf n = shifted - 12582912.0f;
    fkp_vf r = c - n * 0.693145752f - n * 1.42860677e-6f; /* ln 2 in two parts */
    fkp_vf q = fkp_v_set(0.00138144672f);
    q = q * r + 0.00836878084f;
    q = q * r + 0.0416683927f;
    q = q * r + 0.166665196f;
    q = q * r + 0.49999994f;
    fkp_vf p = q * (r * r) + r + 1.0f; /* small terms first: the last addition alone rounds at the result's size */
    /* n may be 128, which has no power of two of its own: scale in two halves */
    fkp_vi k = __builtin_convertvector(n, fkp_vi), half = k >> 1;
    fkp_vf result = p * (fkp_vf)((half + 127) << 23) * (fkp_vf)((k - half + 127) << 23);
    result = fkp_v_select(below, fkp_v_set(0), result);
    result = fkp_v_select(above, fkp_v_set(__builtin_inff()), result);
    return fkp_v_select(is_nan, x, result);
}

/* x / (1 + e^-x) */
static inline fkp_vf fkp_v_silu(fkp_vf x)
{
    return x / (1.0f + fkp_v_exp(-x));
}

/* tanh x: below 0.625 an odd polynomial of degree 11 (fitted for the smallest relative error, 5e-9), above from e^2|x|.
 * Relative error below 2e-7 (tests/test_simd.c). */
static inline fkp_vf fkp_v_tanh(fkp_vf x)
{
    fkp_vf z = x * x, p = fkp_v_set(-0.00570498267f);
    p = p * z + 0.0206390824f;
    p = p * z + -0.0537397154f;
    p = p * z + 0.133314416f;
    p = p * z + -0.333332807f;
    fkp_vf near = p * z * x + x;
    fkp_vi sign = (fkp_vi)x & INT32_MIN;
    fkp_vf magnitude = (fkp_vf)((fkp_vi)x & INT32_MAX);
    fkp_vf far = 1.0f - 2.0f / (fkp_v_exp(magnitude + magnitude) + 1.0f);
    return fkp_v_select(magnitude < 0.625f, near, (fkp_vf)((fkp_vi)far | sign));
}

static inline float fkp_s_exp(float x)
{
    return fkp_v_exp(fkp_v_set(x))[0];
}

#endif
