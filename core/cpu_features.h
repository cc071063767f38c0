/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the built instruction-set levels this machine runs. CPU kernels are compiled once a level; FK_CPU_LEVEL in the
 * environment (scalar, avx2, avx512) caps the level, for tests. */
#ifndef FK_CORE_CPU_FEATURES_H
#define FK_CORE_CPU_FEATURES_H

#include <stdbool.h>

#include <fk/status.h>

typedef enum fkp_cpu_level { FKP_CPU_SCALAR, FKP_CPU_AVX2, FKP_CPU_AVX512, FKP_CPU_LEVELS } fkp_cpu_level;

const char *fkp_cpu_level_name(fkp_cpu_level level);
/* What the machine has, without the cap. */
fkp_cpu_level fkp_cpu_level_detected(void);
/* The level in force; FK_ERROR_INVALID names an unknown or unavailable FK_CPU_LEVEL. */
fk_status fkp_cpu_level_get(fkp_cpu_level *out);
/* Whether kernels of the level avx512 may multiply pairs of bfloat16 (AVX512-BF16): the machine can, and FK_CPU_LEVEL caps nothing. */
bool fkp_cpu_multiplies_bf16(void);

#endif
