/* SPDX-License-Identifier: Apache-2.0 */
/* Device helpers of memory-bound kernels: conversions to and from float, 16-byte packs of elements, warp
 * sums. Streamed data go past L1 (ld.global.cg), so that what every block reads again (weights) stays in it.
 */
#ifndef FK_CORE_CUDA_VEC_H
#define FK_CORE_CUDA_VEC_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include <fk/tensor.h>

static __device__ __forceinline__ float fkd_float(float x)
{
    return x;
}
static __device__ __forceinline__ float fkd_float(__half x)
{
    return __half2float(x);
}
static __device__ __forceinline__ float fkd_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <typename T> __device__ __forceinline__ T fkd_round(float x);
template <> __device__ __forceinline__ float fkd_round<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ __half fkd_round<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ __nv_bfloat16 fkd_round<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* Element `i` of a buffer whose float dtype is known at run time only: for rare combinations. */
static __device__ __forceinline__ float fkd_load_any(const void *data, int dtype, int64_t i)
{
    if (dtype == FK_F32) return ((const float *)data)[i];
    if (dtype == FK_F16) return __half2float(((const __half *)data)[i]);
    return __bfloat162float(((const __nv_bfloat16 *)data)[i]);
}

/* Elements in 16 bytes. */
template <typename T> struct fkd_pack {
    static constexpr int N = 16 / (int)sizeof(T);
};

template <typename T> __device__ __forceinline__ void fkd_unpack(uint4 raw, float (&x)[fkd_pack<T>::N]);
template <> __device__ __forceinline__ void fkd_unpack<float>(uint4 raw, float (&x)[4])
{
    x[0] = __uint_as_float(raw.x), x[1] = __uint_as_float(raw.y);
    x[2] = __uint_as_float(raw.z), x[3] = __uint_as_float(raw.w);
}
template <> __device__ __forceinline__ void fkd_unpack<__nv_bfloat16>(uint4 raw, float (&x)[8])
{
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(words[i] << 16);
        x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}
template <> __device__ __forceinline__ void fkd_unpack<__half>(uint4 raw, float (&x)[8])
{
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        __half2_raw pair;
        pair.x = (unsigned short)words[i], pair.y = (unsigned short)(words[i] >> 16);
        float2 f = __half22float2(__half2(pair));
        x[2 * i] = f.x, x[2 * i + 1] = f.y;
    }
}

/* Two floats rounded into one word, the first in the low half. */
template <typename T> __device__ __forceinline__ uint32_t fkd_pack2(float lo, float hi);
template <> __device__ __forceinline__ uint32_t fkd_pack2<__nv_bfloat16>(float lo, float hi)
{
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    return word;
}
template <> __device__ __forceinline__ uint32_t fkd_pack2<__half>(float lo, float hi)
{
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    return word;
}

template <typename T> __device__ __forceinline__ uint4 fkd_repack(const float (&x)[fkd_pack<T>::N])
{
    if constexpr (sizeof(T) == 4)
        return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                          __float_as_uint(x[3]));
    else
        return make_uint4(fkd_pack2<T>(x[0], x[1]), fkd_pack2<T>(x[2], x[3]), fkd_pack2<T>(x[4], x[5]),
                          fkd_pack2<T>(x[6], x[7]));
}

/* 16 bytes of data that are read once, and of data that every block reads. Addresses are 16-byte aligned. */
static __device__ __forceinline__ uint4 fkd_load_stream(const void *p)
{
    return __ldcg((const uint4 *)p);
}
static __device__ __forceinline__ uint4 fkd_load_shared_by_blocks(const void *p)
{
    return __ldg((const uint4 *)p);
}
/* Weights of a product that fits no cache: past L1, read by no later block; L2 fetches ahead within the row.
 * Read-only memory. */
static __device__ __forceinline__ uint4 fkd_load_once(const void *p)
{
    uint4 raw;
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(raw.x), "=r"(raw.y), "=r"(raw.z), "=r"(raw.w)
        : "l"(p));
    return raw;
}
static __device__ __forceinline__ void fkd_store(void *p, uint4 raw)
{
    *(uint4 *)p = raw;
}

static __device__ __forceinline__ float fkd_warp_sum(float x)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

/* Sum over the warps of a block, the same in every thread, with one barrier. `slots` holds 32 floats;
 * consecutive calls must alternate between two of them, so that a fast warp does not overwrite what a slow
 * one still reads. */
static __device__ __forceinline__ float fkd_block_sum(float x, float *slots)
{
    x = fkd_warp_sum(x);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    if (lane == 0) slots[warp] = x;
    __syncthreads();
    return fkd_warp_sum(lane < warps ? slots[lane] : 0.0f);
}

/* Sums over the threads of x of ROWS rows at once, the same in every thread. Where x is one warp, rows of other y are its own
 * business; else the block is one row wide and meets at one barrier. */
template <int ROWS> __device__ __forceinline__ void fkd_row_sums(float (&sums)[ROWS], float (*slots)[32])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) sums[r] = fkd_warp_sum(sums[r]);
    if (blockDim.x == 32) return;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    if (lane == 0)
#pragma unroll
        for (int r = 0; r < ROWS; r++) slots[r][warp] = sums[r];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) sums[r] = fkd_warp_sum(lane < warps ? slots[r][lane] : 0.0f);
}

#endif
