/* SPDX-License-Identifier: Apache-2.0 */
/* A table of angles for generated inputs, as Llama's first version has it: position p turns pair i by p * 10000^(-2i/R). */
#ifndef FK_OPS_COS_SIN_CACHE_H
#define FK_OPS_COS_SIN_CACHE_H

#include <math.h>

#include "core/element.h"

/* cache [P, R]: R/2 cosines, then R/2 sines. */
static inline void fill_cos_sin_cache(const fk_tensor *cache)
{
    int64_t half = cache->shape[1] / 2;
    for (int64_t p = 0; p < cache->shape[0]; p++)
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)p * pow(10000, -(double)i / (double)half);
            fk_store_element(fkp_at2(cache, p, i), cache->dtype, cos(angle));
            fk_store_element(fkp_at2(cache, p, half + i), cache->dtype, sin(angle));
        }
}

#endif
