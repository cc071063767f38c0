/* SPDX-License-Identifier: Apache-2.0 */
/* Frame of a CUDA baseline, ops/<family>/<op>.cu. The file holds device helpers, kernels and one launcher
 *   fk_status fk_<op>_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_<op>_args *a)
 * and ends with FK_CUDA_OP(<op>), or with FK_CUDA_OP_IF(<op>, supports) when it does not take every valid
 * call. Launchers neither allocate nor synchronize: fk_ctx_scratch gives stream-ordered memory until the
 * operator returns. */
#ifndef FK_CORE_CUDA_OP_H
#define FK_CORE_CUDA_OP_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <fk/ctx.h>
#include <fk/ops.h>

/* FK_OK, or FK_ERROR_DEVICE with CUDA's words; `what` names the operator or the call. */
fk_status fk_cuda_status(fk_ctx *ctx, cudaError_t error, const char *what);
/* Around every launcher: the context's device becomes current; FK_SYNC=1 in the environment waits for the
 * operator, so that a fault is reported under its name. */
fk_status fkp_cuda_begin(fk_ctx *ctx);
fk_status fkp_cuda_end(fk_ctx *ctx, fk_status status, const char *op);
/* Multiprocessors of the current device. */
int fkp_cuda_sm_count(void);
/* Its compute capability, 90 for 9.0. */
int fkp_cuda_capability(void);
/* Blocks of `kernel` that one multiprocessor holds at once; at least 1. The answer
 * is remembered. */
int fkp_cuda_blocks_per_sm(const void *kernel, int threads, size_t shared_bytes);
/* True while `stream` records a graph. */
bool fkp_cuda_is_capturing(cudaStream_t stream);

#define FKP_CUDA_OP(op_name, supports_fn)                                                                    \
    extern "C" fk_status fk_##op_name##_cuda(fk_ctx *ctx, cudaStream_t stream,                               \
                                             const fk_##op_name##_args *a);                                  \
    static fk_status fkp_run_##op_name(fk_ctx *ctx, const void *args, void *)                                \
    {                                                                                                        \
        fk_status status = fkp_cuda_begin(ctx);                                                              \
        if (status == FK_OK)                                                                                 \
            status = fk_##op_name##_cuda(ctx, (cudaStream_t)fk_ctx_stream(ctx),                              \
                                         (const fk_##op_name##_args *)args);                                 \
        return fkp_cuda_end(ctx, status, #op_name);                                                          \
    }                                                                                                        \
    extern "C" {                                                                                             \
    extern const fk_impl fkp_cuda_##op_name;                                                                 \
    const fk_impl fkp_cuda_##op_name = {.op = #op_name,                                                      \
                                        .name = "cuda",                                                      \
                                        .device = FK_CUDA,                                                   \
                                        .fused = false,                                                      \
                                        .priority = 0,                                                       \
                                        .run = fkp_run_##op_name,                                            \
                                        .supports = supports_fn,                                             \
                                        .user = nullptr};                                                    \
    }

#define FK_CUDA_OP(op_name) FKP_CUDA_OP(op_name, nullptr)
#define FK_CUDA_OP_IF(op_name, supports_fn)                                                                  \
    static bool fkp_supports_##op_name(const void *args)                                                     \
    {                                                                                                        \
        return supports_fn((const fk_##op_name##_args *)args);                                               \
    }                                                                                                        \
    FKP_CUDA_OP(op_name, fkp_supports_##op_name)

/* Runs the statement with T standing for the C++ type of a float dtype. The door has checked the dtype. */
#define FK_DISPATCH_FLOAT(dtype_value, T, ...)                                                               \
    FKP_DISPATCH(dtype_value, FKP_CASE(FK_F32, T, float, __VA_ARGS__)                                        \
                 FKP_CASE(FK_F16, T, __half, __VA_ARGS__) FKP_CASE(FK_BF16, T, __nv_bfloat16, __VA_ARGS__))
/* The same for the two that tensor cores multiply as they are. */
#define FK_DISPATCH_HALF(dtype_value, T, ...)                                                                \
    FKP_DISPATCH(dtype_value, FKP_CASE(FK_F16, T, __half, __VA_ARGS__) FKP_CASE(FK_BF16, T, __nv_bfloat16, __VA_ARGS__))
/* And for indices. */
#define FK_DISPATCH_INT(dtype_value, I, ...)                                                                 \
    FKP_DISPATCH(dtype_value, FKP_CASE(FK_I32, I, int32_t, __VA_ARGS__) FKP_CASE(FK_I64, I, int64_t, __VA_ARGS__))

#define FKP_DISPATCH(dtype_value, ...)                                                                       \
    switch (dtype_value) {                                                                                   \
        __VA_ARGS__                                                                                          \
    default:                                                                                                 \
        return fk_fail(FK_ERROR_UNSUPPORTED, "no CUDA kernel for %s", fk_dtype_name(dtype_value));           \
    }
#define FKP_CASE(dtype, T, type, ...)                                                                        \
    case dtype: {                                                                                            \
        using T = type;                                                                                      \
        __VA_ARGS__;                                                                                         \
        break;                                                                                               \
    }

/* True when `bytes` apart from an aligned pointer still is 16-byte aligned: the condition of vector loads. */
static inline bool fkp_cuda_aligned16(const void *data, int64_t stride_bytes)
{
    return ((uintptr_t)data | (uintptr_t)stride_bytes) % 16 == 0;
}

/* True when the dims after the first are dense, [T, K, E] cut out of wider rows: what per-token kernels take.
 */
static inline bool fkp_cuda_dense_after(const fk_tensor *t, int dim)
{
    int64_t stride = 1;
    for (int i = t->ndim - 1; i > dim; i--) {
        if (t->shape[i] == 0) return true;
        if (t->shape[i] != 1 && t->strides[i] != stride) return false;
        stride *= t->shape[i];
    }
    return true;
}

#endif
