/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor-core and asynchronous-copy instructions as functions (PTX ISA 8.0, "mma.m16n8k16", "ldmatrix",
 * "cp.async"). Of a 16x8 accumulator lane l holds rows l/4 and l/4 + 8, columns 2 (l%4) and the one after. */
#ifndef FK_CORE_CUDA_MMA_H
#define FK_CORE_CUDA_MMA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* c += a b: a 16x16 in four words, b 16x8 in two, float accumulators. */
template <typename T>
__device__ __forceinline__ void fkd_mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ __forceinline__ void fkd_mma<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                       uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void fkd_mma<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four 8x8 matrices of 16-bit elements; lane 8 i + r gives the shared address of row r of matrix i, 16-byte
 * aligned. */
static __device__ __forceinline__ void fkd_ldmatrix(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
static __device__ __forceinline__ void fkd_ldmatrix_transposed(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ uint32_t fkd_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* 16 bytes from global to shared memory; zeros when `valid` is false (the source is not touched then). */
static __device__ __forceinline__ void fkd_copy_async(uint32_t to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
static __device__ __forceinline__ void fkd_copy_async_word(uint32_t to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(to), "l"(from) : "memory");
}
/* Ends a group of copies; waits until at most `Pending` younger groups of this thread are under way. */
static __device__ __forceinline__ void fkd_copy_commit()
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int Pending> __device__ __forceinline__ void fkd_copy_wait()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory");
}

/* 2^x with denormals as zeros; exp2(-inf) = 0. */
static __device__ __forceinline__ float fkd_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
