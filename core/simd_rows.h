/* SPDX-License-Identifier: Apache-2.0 */
/* Work on the rows of a tensor: splitting them over threads, reductions, scaling. Float32; reductions keep four partial
 * sums to hide the latency of the additions. `at` is the position of a row's first element. */
#ifndef FK_CORE_SIMD_ROWS_H
#define FK_CORE_SIMD_ROWS_H

#include <fk/ctx.h>

#include "core/simd.h"
#include "core/threads.h"

/* Calls part(args, begin, end) for rows [begin, end) of `t`, split over threads that get `grain` elements at least; not at
 * all where there is no element. */
static inline fk_status fkp_rows_run(fk_ctx *ctx, const fk_tensor *t, int64_t grain, fkp_range_fn part, const void *args)
{
    int64_t rows, d;
    fk_rows_cols(t, &rows, &d);
    if (rows > 0 && d > 0) fkp_parallel_for(fk_ctx_threads(ctx), rows, 1 + grain / d, part, (void *)(uintptr_t)args);
    return FK_OK;
}

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

/* A row of d elements: out = (in - center) * scale * weight + bias. weight and bias [d] are NULL when absent. */
static inline __attribute__((always_inline)) void fkp_row_scale(const fk_tensor *out, int64_t out_at, const fk_tensor *in, int64_t at,
                                                                int64_t d, float center, float scale, const fk_tensor *weight,
                                                                const fk_tensor *bias)
{
    fk_dtype dtype = in->dtype;
    int64_t i = 0;
    for (; i + FKP_LANES <= d; i += FKP_LANES) {
        fkp_vf x = (fkp_v_load(in->data, dtype, at + i) - center) * scale;
        if (weight) x *= fkp_v_load(weight->data, weight->dtype, i);
        if (bias) x += fkp_v_load(bias->data, bias->dtype, i);
        fkp_v_store(out->data, dtype, out_at + i, x);
    }
    for (; i < d; i++) {
        float x = (fkp_s_load(in->data, dtype, at + i) - center) * scale;
        if (weight) x *= fkp_s_load(weight->data, weight->dtype, i);
        if (bias) x += fkp_s_load(bias->data, bias->dtype, i);
        fkp_s_store(out->data, dtype, out_at + i, x);
    }
}

#endif
