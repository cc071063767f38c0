/* SPDX-License-Identifier: Apache-2.0 */
/* What test_simd.c asks of each instruction-set level. */
#ifndef FK_TESTS_SIMD_LEVEL_H
#define FK_TESTS_SIMD_LEVEL_H

#include <fk/tensor.h>

typedef struct fkp_simd_level {
    int lanes;
    double (*exp_error)(uint32_t step); /* largest relative error over every step-th float */
    double (*tanh_error)(uint32_t step);
    float (*exp_of)(float x);
    float (*tanh_of)(float x);
    int64_t (*bad_loads)(fk_dtype dtype); /* patterns that differ from core/dtype.h */
    int64_t (*bad_stores)(fk_dtype dtype);
    bool (*shuffles_are_right)(void);
} fkp_simd_level;

extern const fkp_simd_level fkp_simd_scalar, fkp_simd_avx2, fkp_simd_avx512;

#endif
