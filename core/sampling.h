/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of sampling, shared by every implementation on every device, so that a token depends on logits and random
 * number alone and not on an order of summation: probabilities are integers (units of 2^-40 of the largest one), whose
 * sums are the same in any order; the exponential behind them is a fixed sequence of IEEE float32 operations.
 *
 *   d = (z - z_max) / temperature            two float32 roundings; 0 where z equals z_max, also when both are infinite
 *   w = fkp_sample_weight(d)                 about 2^40 * e^d, 0 below e^-27.5 (1e-12); relative error below 3e-6
 *   order: larger z first, of equal z the lower index (-0 equals 0)
 *   min_p: those with w of at least fkp_sample_floor(min_p) stay, a beginning of that order
 *   top_k: of these the first k stay
 *   top_p: S = sum of w over those; the shortest prefix with sum >= fkp_sample_cut(top_p, S) stays, one token at least
 *   R = sum of w over what stays; target = fkp_sample_target(fkp_sample_random(seed, offset), R)
 *   the token: the first by INDEX among what stays whose running sum of w is larger than target
 *
 * A parallel implementation finds both cuts by bisection over the 64-bit keys of fkp_sample_order, each step one counting
 * or summing pass, and the token by a prefix sum. Up to 2^23 tokens fit the 64-bit sums. */
#ifndef FK_CORE_SAMPLING_H
#define FK_CORE_SAMPLING_H

#include <math.h>
#include <stdint.h>

#include "core/seeded.h"

/* Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, in place. */
static inline FKP_HOST_DEVICE void fkp_philox4x32_10(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * counter[0], p1 = (uint64_t)0xcd9e8d57u * counter[2];
        uint32_t c1 = counter[1], c3 = counter[3];
        counter[0] = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
        counter[1] = (uint32_t)p1;
        counter[2] = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
        counter[3] = (uint32_t)p0;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
}

/* The random number of a row: words 0 (low) and 1 (high) of the block with key = seed and counter = offset, low halves
 * first, the counter's upper two words 0. A 64-bit fraction of 1. */
static inline FKP_HOST_DEVICE uint64_t fkp_sample_random(int64_t seed, int64_t offset)
{
    uint32_t words[4] = {(uint32_t)(uint64_t)offset, (uint32_t)((uint64_t)offset >> 32), 0, 0};
    fkp_philox4x32_10(words, (uint32_t)(uint64_t)seed, (uint32_t)((uint64_t)seed >> 32));
    return (uint64_t)words[1] << 32 | words[0];
}

/* Weight of a token at distance d <= 0 from the largest logit. 2^f on [0, 1) is a polynomial of degree 5 (relative error
 * 1e-7); every multiply-add is written as such, so that no compiler can choose. */
static inline FKP_HOST_DEVICE uint64_t fkp_sample_weight(float d)
{
    if (!(d > -27.5f)) return 0;
    float n = floorf(d * 1.44269504f), f = fmaf(d, 1.44269504f, -n);
    float p = fmaf(f, 0x1.e974fap-10f, 0x1.277856p-7f);
    p = fmaf(f, p, 0x1.c91ce6p-5f);
    p = fmaf(f, p, 0x1.ebdb56p-3f);
    p = fmaf(f, p, 0x1.62e4bap-1f);
    p = fmaf(f, p, 1.0f);
    uint64_t mantissa = (uint64_t)(p * 0x1p23f); /* exact: p has 24 bits */
    int shift = 17 + (int)n;
    return shift >= 0 ? mantissa << shift : mantissa >> -shift;
}

/* Distance from the largest logit of the row; temperature above 0. */
static inline FKP_HOST_DEVICE float fkp_sample_distance(float z, float z_max, float temperature)
{
    if (z == z_max) return 0;
#ifdef __CUDA_ARCH__
    return __fdiv_rn(__fsub_rn(z, z_max), temperature);
#else
    return (z - z_max) / temperature;
#endif
}

/* Sort key of a token: the larger key comes first. index below 2^32; z is no NaN. */
static inline FKP_HOST_DEVICE uint64_t fkp_sample_order(float z, uint32_t index)
{
    union { float value; uint32_t bits; } u = {z + 0.0f}; /* -0 becomes 0 */
    uint32_t ascending = u.bits >> 31 ? ~u.bits : u.bits | 0x80000000u;
    return (uint64_t)ascending << 32 | (0xffffffffu - index);
}

/* Least weight of a token that stays: the largest probability has 2^40. 0: all stay; NaN counts as 0. */
static inline FKP_HOST_DEVICE uint64_t fkp_sample_floor(float min_p)
{
    if (!(min_p > 0)) return 0;
    return min_p < 1 ? (uint64_t)(min_p * 0x1p40f) : (uint64_t)1 << 40;
}

/* Weight that the kept prefix must reach; `sum` when top_p is 1 or more (or NaN). */
static inline FKP_HOST_DEVICE uint64_t fkp_sample_cut(float top_p, uint64_t sum)
{
    if (!(top_p < 1)) return sum;
    return top_p > 0 ? (uint64_t)((double)top_p * (double)sum) : 0;
}

/* floor(random / 2^64 * sum), below sum. */
static inline FKP_HOST_DEVICE uint64_t fkp_sample_target(uint64_t random, uint64_t sum)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(random, sum);
#else
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)random * sum >> 64);
#endif
}

#endif
