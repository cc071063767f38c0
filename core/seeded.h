/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded values: an element of a tensor as a pure function of (seed, name, index), the same bits in C, CUDA
 * (this header) and Python (tools/reference/seeded.py). A 64-bit hash gives four 16-bit uniforms; their centred sum s is an
 * integer of 18 bits (standard deviation 37837), near normal, exact in float32; a power of two scales it by role and
 * fan-in, so that activations keep a sane range through deep models. */
#ifndef FK_CORE_SEEDED_H
#define FK_CORE_SEEDED_H

#include <stdint.h>

#ifdef __CUDACC__
#define FKP_HOST_DEVICE __host__ __device__
#else
#define FKP_HOST_DEVICE
#endif

/* value = offset + s * 2^exponent, exact in float32. */
typedef struct fkp_seeded_scale {
    int offset; /* 1 for norm weights, else 0 */
    int exponent;
} fkp_seeded_scale;

static inline FKP_HOST_DEVICE uint64_t fkp_mix64(uint64_t z)
{
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9u;
    z ^= z >> 27;
    z *= 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t fkp_fnv1a64(const void *data, uint64_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}

/* Key of a tensor. */
uint64_t fkp_seeded_key(uint64_t seed, const char *name);
/* Scale by checkpoint name and shape: names ending in "bias": 2^-21; one dim: 1 + 2^-19; "embed_tokens", "embeddings",
 * "wte": 2^-15; else matrices: 2^-15 / about sqrt(fan_in), fan_in the product of all dims but the first. */
fkp_seeded_scale fkp_seeded_scale_for(const char *name, int ndim, const int64_t *shape);

static inline FKP_HOST_DEVICE int32_t fkp_seeded_sum(uint64_t key, uint64_t index)
{
    uint64_t h = fkp_mix64(key + (index + 1) * 0x9e3779b97f4a7c15u);
    return (int32_t)((h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48)) - 131070;
}

static inline FKP_HOST_DEVICE float fkp_seeded_value(uint64_t key, uint64_t index, fkp_seeded_scale scale)
{
    union { uint32_t bits; float value; } power = {(uint32_t)(scale.exponent + 127) << 23};
    return (float)scale.offset + (float)fkp_seeded_sum(key, index) * power.value;
}

#endif
