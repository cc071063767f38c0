/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of products in fp8 share: a quantised row, and generated weights and scales. */
#ifndef FK_OPS_FP8_REFERENCE_H
#define FK_OPS_FP8_REFERENCE_H

#include <fk/ctx.h>

#include "core/element.h"
#include "core/random.h"
#include "core/small_float.h"
#include "ops/linear/fp8_group.h"

/* Row t of `input` after quantising in groups of FP8_BLOCK and back. */
static inline void fp8_reference_quantized(const fk_tensor *input, int64_t t, double *row)
{
    int64_t depth = input->shape[1];
    for (int64_t first = 0; first < depth; first += FP8_BLOCK) {
        int64_t end = first + FP8_BLOCK < depth ? first + FP8_BLOCK : depth;
        float largest = 0;
        for (int64_t i = first; i < end; i++) largest = fmaxf(largest, fabsf((float)fk_load_element(fkp_at2(input, t, i), input->dtype)));
        float scale = fp8_scale(largest, FP8_EPS, FP8_MAX, false);
        for (int64_t i = first; i < end; i++) {
            float x = (float)fk_load_element(fkp_at2(input, t, i), input->dtype);
            uint8_t q = fkp_small_from_f64((double)fp8_scaled(x, scale, -FP8_MAX, FP8_MAX), FK_F8_E4M3);
            row[i] = (double)fkp_f32_from_small(q, FK_F8_E4M3) * (double)scale;
        }
    }
}

/* Every finite value of the dtype is as likely. */
static inline void fp8_fill(fk_random *random, const fk_tensor *t)
{
    for (int64_t i = 0, n = fk_tensor_numel(t); i < n; i++)
        *(uint8_t *)fk_tensor_at(t, i) = (uint8_t)(fkp_random_below(random, 127) | fkp_random_below(random, 2) << 7);
}

/* Scales that give sums over `depth` terms a size near 1. */
static inline void fp8_fill_scales(fk_random *random, const fk_tensor *t, int64_t depth)
{
    for (int64_t i = 0, n = fk_tensor_numel(t); i < n; i++)
        fk_store_element(fk_tensor_at(t, i), FK_F32, (0.5 + fkp_random_uniform(random)) / (100 * sqrt((double)depth + 1)));
}

#endif
