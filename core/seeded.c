/* SPDX-License-Identifier: Apache-2.0 */
/* Key and scale of a seeded tensor. */
#include "core/seeded.h"

#include <string.h>

uint64_t fkp_seeded_key(uint64_t seed, const char *name)
{
    return fkp_mix64(seed ^ fkp_fnv1a64(name, strlen(name)));
}

static int log2_floor(uint64_t x)
{
    return x ? 63 - __builtin_clzll(x) : 0;
}

fkp_seeded_scale fkp_seeded_scale_for(const char *name, int ndim, const int64_t *shape)
{
    size_t n = strlen(name);
    if (n >= 4 && strcmp(name + n - 4, "bias") == 0) return (fkp_seeded_scale){0, -21};
    if (ndim <= 1) return (fkp_seeded_scale){1, -19};
    if (strstr(name, "embed_tokens") || strstr(name, "embeddings") || strstr(name, "wte"))
        return (fkp_seeded_scale){0, -15};
    uint64_t fan_in = 1;
    for (int i = 1; i < ndim; i++) fan_in *= (uint64_t)shape[i];
    return (fkp_seeded_scale){0, -15 - (log2_floor(fan_in) + 1) / 2};
}
