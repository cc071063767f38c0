/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between float32 and the 16-bit float types, to nearest even, in plain integer arithmetic: the same bits on
 * every machine, in references, candidates, tests and tools. NaN stays NaN (quiet, sign kept). */
#ifndef FK_HALF_H
#define FK_HALF_H

#include <stdint.h>
#include <string.h>

static inline float fk_f32_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t fk_bits_from_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float fk_f32_from_bf16(uint16_t h)
{
    return fk_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t fk_bf16_from_f32(float f)
{
    uint32_t u = fk_bits_from_f32(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x0040u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float fk_f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24, exact in float32 */
        float magnitude = (float)mantissa * 0x1p-24f;
        return fk_f32_from_bits(sign | fk_bits_from_f32(magnitude));
    }
    if (exponent == 31) return fk_f32_from_bits(sign | 0x7f800000u | mantissa << 13);
    return fk_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static inline uint16_t fk_f16_from_f32(float f)
{
    uint32_t u = fk_bits_from_f32(f), magnitude = u & 0x7fffffffu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 lines the mantissa up with units of 2^-24 and rounds */
        float shifted = fk_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (fk_bits_from_f32(shifted) - 0x3f000000u));
    }
    magnitude += 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
    return (uint16_t)(sign | magnitude >> 13);
}

#endif
