/* SPDX-License-Identifier: Apache-2.0 */
/* One group of numbers to fp8 on the CPU, and back to float32 for products. */
#ifndef FK_OPS_FP8_QUANT_CPU_H
#define FK_OPS_FP8_QUANT_CPU_H

#include "core/simd_fp8.h"
#include "ops/linear/fp8_group.h"

static inline float fp8_largest(const void *data, fk_dtype dtype, int64_t at, int64_t n)
{
    fkp_vf top = fkp_v_set(0);
    int64_t i = 0;
    for (; i + FKP_LANES <= n; i += FKP_LANES)
        top = fkp_v_larger((fkp_vf)((fkp_vi)fkp_v_load(data, dtype, at + i) & INT32_MAX), top);
    float largest = fkp_v_max(top);
    for (; i < n; i++) largest = fmaxf(largest, fabsf(fkp_s_load(data, dtype, at + i)));
    return largest;
}

/* Clamped quotients of FKP_LANES numbers; NaN becomes the least one. */
static inline fkp_vf fp8_scaled_vector(fkp_vf x, float scale, float fp8_min, float fp8_max)
{
    fkp_vf y = x / scale, low = fkp_v_set(fp8_min), high = fkp_v_set(fp8_max);
    y = fkp_v_select(y > low, y, low);
    return fkp_v_select(y < high, y, high);
}

/* Numbers [at, at + n) of `data` into q. */
static inline void fp8_quantize(const void *data, fk_dtype dtype, int64_t at, int64_t n, float scale, float fp8_min, float fp8_max,
                                uint8_t *q)
{
    int64_t i = 0;
    for (; i + FKP_LANES <= n; i += FKP_LANES)
        fkp_v_store_e4m3(q + i, fp8_scaled_vector(fkp_v_load(data, dtype, at + i), scale, fp8_min, fp8_max));
    if (i == n) return;
    fkp_vf rest = fkp_v_set(0);
    uint8_t bytes[FKP_LANES];
    for (int64_t k = i; k < n; k++) rest[k - i] = fkp_s_load(data, dtype, at + k);
    fkp_v_store_e4m3(bytes, fp8_scaled_vector(rest, scale, fp8_min, fp8_max));
    memcpy(q + i, bytes, (size_t)(n - i));
}

/* n numbers times their scale. */
static inline void fp8_dequantize(const uint8_t *q, int64_t n, float scale, float *to)
{
    int64_t i = 0;
    for (; i + FKP_LANES <= n; i += FKP_LANES) fkp_v_store_f32(to + i, fkp_v_load_e4m3(q + i) * scale);
    if (i == n) return;
    uint8_t bytes[FKP_LANES] = {0};
    memcpy(bytes, q + i, (size_t)(n - i));
    fkp_vf rest = fkp_v_load_e4m3(bytes) * scale;
    for (int64_t k = i; k < n; k++) to[k] = rest[k - i];
}

#endif
