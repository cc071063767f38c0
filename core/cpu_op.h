/* SPDX-License-Identifier: Apache-2.0 */
/* Frame of a CPU implementation, ops/<family>/<op>_cpu.c. The file is compiled once an instruction-set level, with
 * FKP_LEVEL set to scalar, avx2 or avx512 and FKP_LEVEL_PRIORITY to 0, 1, 2; it is written once over the vectors of
 * core/simd.h. It ends with one of
 *   FK_CPU_OP(rms_norm, run)                  fk_status run(fk_ctx *, const fk_rms_norm_args *)
 *   FK_CPU_OP_IF(rms_norm, run, supports)     bool supports(const fk_rms_norm_args *)
 *   FK_CPU_OP_FUSED(llama_mlp, run, supports) an L2/L3 operator computed without calls below
 * and the build lists it: a file with the right name is enough. */
#ifndef FK_CORE_CPU_OP_H
#define FK_CORE_CPU_OP_H

#include <fk/ctx.h>
#include <fk/ops.h>

#define FKP_PASTE2_(a, b) a##_##b
#define FKP_PASTE2(a, b) FKP_PASTE2_(a, b)
#define FKP_PASTE3_(a, b, c) a##_##b##_##c
#define FKP_PASTE3(a, b, c) FKP_PASTE3_(a, b, c)
#define FKP_LEVEL_NAME(name) FKP_PASTE2(name, FKP_LEVEL) /* of a function that kernels of one level share */
#define FKP_STRING_(x) #x
#define FKP_STRING(x) FKP_STRING_(x)

#define FKP_CPU_IMPL(op_name, run_fn, supports_fn, is_fused)                                                         \
    static fk_status fkp_run_##op_name(fk_ctx *ctx, const void *args, void *user)                                    \
    {                                                                                                                \
        (void)user;                                                                                                  \
        return run_fn(ctx, args);                                                                                    \
    }                                                                                                                \
    extern const fk_impl FKP_PASTE3(fkp_cpu, op_name, FKP_LEVEL);                                                    \
    const fk_impl FKP_PASTE3(fkp_cpu, op_name, FKP_LEVEL) = {                                                        \
        .op = #op_name, .name = FKP_STRING(FKP_LEVEL), .device = FK_CPU, .fused = is_fused,                          \
        .priority = FKP_LEVEL_PRIORITY, .run = fkp_run_##op_name, .supports = supports_fn,                           \
    }

#define FKP_CPU_SUPPORTS(op_name, supports_fn)                                                                       \
    static bool fkp_supports_##op_name(const void *args)                                                             \
    {                                                                                                                \
        return supports_fn(args);                                                                                    \
    }

#define FK_CPU_OP(op_name, run_fn) FKP_CPU_IMPL(op_name, run_fn, NULL, false)
#define FK_CPU_OP_IF(op_name, run_fn, supports_fn)                                                                   \
    FKP_CPU_SUPPORTS(op_name, supports_fn) FKP_CPU_IMPL(op_name, run_fn, fkp_supports_##op_name, false)
#define FK_CPU_OP_FUSED(op_name, run_fn, supports_fn)                                                                \
    FKP_CPU_SUPPORTS(op_name, supports_fn) FKP_CPU_IMPL(op_name, run_fn, fkp_supports_##op_name, true)

#endif
