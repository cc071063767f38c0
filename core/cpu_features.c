/* SPDX-License-Identifier: Apache-2.0 */
/* CPUID (through the compiler's helpers, which also ask whether the system saves the wide registers). */
#include "core/cpu_features.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[FKP_CPU_LEVELS] = {"scalar", "avx2", "avx512"};

const char *fkp_cpu_level_name(fkp_cpu_level level)
{
    return names[level];
}

fkp_cpu_level fkp_cpu_level_detected(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return FKP_CPU_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return FKP_CPU_AVX512;
    return FKP_CPU_AVX2;
}

fk_status fkp_cpu_level_get(fkp_cpu_level *out)
{
    *out = fkp_cpu_level_detected();
    const char *cap = getenv("FK_CPU_LEVEL");
    if (!cap || !*cap) return FK_OK;
    for (int i = 0; i < FKP_CPU_LEVELS; i++) {
        if (strcmp(cap, names[i]) != 0) continue;
        if ((fkp_cpu_level)i > *out)
            return fk_fail(FK_ERROR_UNSUPPORTED, "FK_CPU_LEVEL=%s, but this machine has %s", cap, names[*out]);
        *out = (fkp_cpu_level)i;
        return FK_OK;
    }
    return fk_fail(FK_ERROR_INVALID, "FK_CPU_LEVEL=%s is none of scalar, avx2, avx512", cap);
}

bool fkp_cpu_multiplies_bf16(void)
{
    const char *cap = getenv("FK_CPU_LEVEL");
    __builtin_cpu_init();
    return !(cap && *cap) && __builtin_cpu_supports("avx512bf16");
}
