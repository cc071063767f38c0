/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over one row of a tensor, float32, four partial sums to hide the latency of the additions. `at` is the
 * position of the row's first element. */
#ifndef FK_CORE_SIMD_ROWS_H
#define FK_CORE_SIMD_ROWS_H

#include "core/simd.h"

/* Sum of x. */
static inline float fkp_row_sum(const void *data, fk_dtype dtype, int64_t at, int64_t d)
{
    int64_t i = 0;
    fkp_vf sums[4] = {{0}};
    for (; i + 4 * FKP_LANES <= d; i += 4 * FKP_LANES)
        for (int k = 0; k < 4; k++) sums[k] += fkp_v_load(data, dtype, at + i + k * FKP_LANES);
    float sum = fkp_v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < d; i++) sum += fkp_s_load(data, dtype, at + i);
    return sum;
}

/* Sum of (x - center)^2. */
static inline float fkp_row_sum_squares(const void *data, fk_dtype dtype, int64_t at, int64_t d, float center)
{
    int64_t i = 0;
    fkp_vf sums[4] = {{0}};
    for (; i + 4 * FKP_LANES <= d; i += 4 * FKP_LANES)
        for (int k = 0; k < 4; k++) {
            fkp_vf x = fkp_v_load(data, dtype, at + i + k * FKP_LANES) - center;
            sums[k] += x * x;
        }
    float sum = fkp_v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < d; i++) {
        float x = fkp_s_load(data, dtype, at + i) - center;
        sum += x * x;
    }
    return sum;
}

/* Largest element; minus infinity for an empty row. NaN are passed over. */
static inline float fkp_row_max(const void *data, fk_dtype dtype, int64_t at, int64_t d)
{
    int64_t i = 0;
    fkp_vf largest = fkp_v_set(-__builtin_inff());
    for (; i + FKP_LANES <= d; i += FKP_LANES) largest = fkp_v_larger(fkp_v_load(data, dtype, at + i), largest);
    float top = fkp_v_max(largest);
    for (; i < d; i++) {
        float x = fkp_s_load(data, dtype, at + i);
        if (x > top) top = x;
    }
    return top;
}

#endif
