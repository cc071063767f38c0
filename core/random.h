/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for generated inputs: a splitmix64 sequence, repeatable from its seed. Not for secrets. */
#ifndef FK_CORE_RANDOM_H
#define FK_CORE_RANDOM_H

#include <math.h>

#include "core/seeded.h"

struct fk_random {
    uint64_t state;
};
typedef struct fk_random fk_random;

static inline uint64_t fkp_random_u64(fk_random *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return fkp_mix64(r->state);
}

/* Uniform in [0, bound); bound at least 1. The bias of the plain product is below bound / 2^64. */
static inline int64_t fkp_random_below(fk_random *r, int64_t bound)
{
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)((wide)fkp_random_u64(r) * (uint64_t)bound >> 64);
}

/* A step width with which i * stride % n visits all of [0, n): prime to n, random below it. 1 for n below 2. */
static inline int64_t fkp_random_stride(fk_random *r, int64_t n)
{
    for (int64_t stride = n > 1 ? 1 + fkp_random_below(r, n - 1) : 1;; stride++) {
        int64_t a = stride, b = n;
        while (b) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1 || n < 2) return stride;
    }
}

/* Uniform in [0, 1), 53 bits. */
static inline double fkp_random_uniform(fk_random *r)
{
    return (double)(fkp_random_u64(r) >> 11) * 0x1p-53;
}

/* Standard normal (Box-Muller). */
static inline double fkp_random_normal(fk_random *r)
{
    double u = 1 - fkp_random_uniform(r), v = fkp_random_uniform(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

#endif
