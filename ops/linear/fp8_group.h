/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising a group of numbers to fp8 e4m3 with a scale of its own: every step in float32, so that all implementations give
 * the same bits; C and CUDA. Weights have scales for blocks of FP8_BLOCK x FP8_BLOCK. */
#ifndef FK_OPS_FP8_GROUP_H
#define FK_OPS_FP8_GROUP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FP8_BLOCK 128
#define FP8_MAX 448.0f
#define FP8_EPS 1e-10f /* the least largest magnitude of a group: groups of zeros keep a scale that can be divided by */

#ifdef __CUDACC__
#define FP8_FN static __host__ __device__ inline
#else
#define FP8_FN static inline
#endif

/* The smallest power of two that is not below x; x positive and normal. */
FP8_FN float fp8_power_of_two(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fffffu) & 0x7f800000u; /* any fraction carries into the exponent */
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The scale of a group whose largest magnitude is `largest`: what its numbers are divided by. */
FP8_FN float fp8_scale(float largest, float eps, float fp8_max, int power_of_two)
{
    float scale = (largest > eps ? largest : eps) / fp8_max;
    if (!power_of_two) return scale;
    return fp8_power_of_two(scale > 1e-10f ? scale : 1e-10f);
}

/* What is rounded to fp8; NaN counts as the least value, as in production. */
FP8_FN float fp8_scaled(float x, float scale, float fp8_min, float fp8_max)
{
    return fminf(fmaxf(x / scale, fp8_min), fp8_max);
}

#endif
