/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of fp8 e4m3 to and from float32, by the rules of core/small_float.h. */
#ifndef FK_CORE_SIMD_FP8_H
#define FK_CORE_SIMD_FP8_H

#include "core/simd.h"

typedef uint8_t fkp_vb __attribute__((vector_size(FKP_LANES)));

static inline fkp_vf fkp_v_load_e4m3(const uint8_t *p)
{
    fkp_vb bytes;
    memcpy(&bytes, p, sizeof bytes);
    fkp_vi bits = __builtin_convertvector(bytes, fkp_vi), magnitude = bits & 0x7f;
    fkp_vf normal = (fkp_vf)((magnitude << 20) + (120 << 23)); /* the exponent's bias grows from 7 to 127 */
    fkp_vf small = __builtin_convertvector(magnitude, fkp_vf) * 0x1p-9f;
    fkp_vf value = fkp_v_select(magnitude < 8, small, normal);
    value = fkp_v_select(magnitude == 0x7f, fkp_v_set(__builtin_nanf("")), value);
    return (fkp_vf)((fkp_vi)value | (bits & 0x80) << 24);
}

/* To nearest even; |v| at most 448 and no NaN. */
static inline void fkp_v_store_e4m3(uint8_t *p, fkp_vf v)
{
    fkp_vi bits = (fkp_vi)v, sign = (fkp_vi)((fkp_vu)bits >> 24) & 0x80, magnitude = bits & INT32_MAX;
    fkp_vi normal = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - (120 << 3);
    /* Below 2^-6 values are multiples of 2^-9; adding 1.5 * 2^23 rounds to one. The eighth is the first normal number. */
    fkp_vf shifted = (fkp_vf)magnitude * 0x1p9f + 12582912.0f;
    fkp_vi small = (fkp_vi)shifted - 0x4b400000;
    fkp_vi result = ((magnitude < (121 << 23)) & small) | (~(magnitude < (121 << 23)) & normal);
    fkp_vb bytes = __builtin_convertvector(result | sign, fkp_vb);
    memcpy(p, &bytes, sizeof bytes);
}

#endif
