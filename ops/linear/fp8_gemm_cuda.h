/* SPDX-License-Identifier: Apache-2.0 */
/* out = (a * a_scale) (b * b_scale)^T on CUDA, both fp8 e4m3: tensor cores (mma.sync m16n8k32) sum a block of 128 along k, then
 * the sums take the scales of their row and block and are added up in float32. Two stages of cp.async. Half of what wgmma
 * reaches, and few rows leave most of the device idle, since k is not split. */
#ifndef FK_OPS_FP8_GEMM_CUDA_H
#define FK_OPS_FP8_GEMM_CUDA_H

#include "core/cuda_mma.h"
#include "core/cuda_op.h"
#include "core/cuda_vec.h"
#include "ops/linear/fp8_group.h"

#define FP8_BM 64
#define FP8_BN FP8_BLOCK /* one scale for all columns of a tile */
#define FP8_BK FP8_BLOCK
#define FP8_PITCH (FP8_BK + 16) /* an odd number of 16-byte units: ldmatrix meets every bank once */
#define FP8_THREADS 256 /* 2 x 4 warps of 32 x 32 outputs */
#define FP8_SHARED_BYTES (2 * (FP8_BM + FP8_BN) * FP8_PITCH)

/* a [m, k], b [n, k] or one such of each expert, out [m, n]; strides in elements. */
struct fp8_gemm {
    const uint8_t *a, *b;
    const float *a_scale, *b_scale;
    void *out;
    const int32_t *experts; /* of each row, negative: zeros; NULL: all rows have the one b */
    int64_t m, n, k, a_stride, b_stride, b_expert, a_scale_row, a_scale_group, b_scale_row, b_scale_group, b_scale_expert, out_stride;
    int num_experts;
    bool aligned; /* rows of a and b are 16-byte aligned and k is a multiple of 16 */
};

static __device__ __forceinline__ void fp8_mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 890
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap(); /* `supports` keeps such devices away */
#endif
}

/* ROWS rows of BK bytes from (row, k) on to shared memory; what lies outside is zeros. */
template <int ROWS>
static __device__ __forceinline__ void fp8_copy(unsigned char *to, const uint8_t *from, int64_t stride, int64_t row, int64_t rows, int64_t at,
                                                int64_t k, bool aligned)
{
    for (int item = threadIdx.x; item < ROWS * FP8_BK / 16; item += FP8_THREADS) {
        const int r = item / (FP8_BK / 16), i = item % (FP8_BK / 16) * 16;
        const bool inside = row + r < rows;
        const uint8_t *source = inside ? from + (row + r) * stride + at + i : from;
        unsigned char *target = to + r * FP8_PITCH + i;
        if (aligned) {
            const bool valid = inside && at + i < k;
            fkd_copy_async(fkd_shared_address(target), valid ? source : from, valid);
        } else {
            for (int j = 0; j < 16; j++) target[j] = inside && at + i + j < k ? source[j] : 0;
        }
    }
}

/* part = a b^T of one block of k, for the warp's 32 x 32 outputs. */
static __device__ __forceinline__ void fp8_multiply(float (&part)[2][4][4], uint32_t a, uint32_t b)
{
    const int lane = threadIdx.x % 32;
    const uint32_t a_lane = a + lane % 16 * FP8_PITCH + lane / 16 * 16;
    const uint32_t b_lane = b + (lane / 16 * 8 + lane % 8) * FP8_PITCH + lane / 8 % 2 * 16;
#pragma unroll
    for (int step = 0; step < FP8_BK / 32; step++) {
        uint32_t left[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) fkd_ldmatrix(left[m], a_lane + m * 16 * FP8_PITCH + step * 32);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            uint32_t right[4];
            fkd_ldmatrix(right, b_lane + n * 16 * FP8_PITCH + step * 32);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                fp8_mma(part[m][2 * n], left[m], right[0], right[1]);
                fp8_mma(part[m][2 * n + 1], left[m], right[2], right[3]);
            }
        }
    }
}

/* sum = the tile's product with the weights of one expert. */
static __device__ __forceinline__ void fp8_tile(float (&sum)[2][4][4], const fp8_gemm &g, int64_t row, int64_t column, int64_t expert,
                                                unsigned char *shared)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / 4 * 32 + lane / 4;
    const uint8_t *b = g.b + expert * g.b_expert;
    const float *b_scale = g.b_scale + expert * g.b_scale_expert + column / FP8_BLOCK * g.b_scale_row;
    const int64_t blocks = (g.k + FP8_BK - 1) / FP8_BK;
    auto copy = [&](int64_t i) {
        unsigned char *to = shared + i % 2 * (FP8_BM + FP8_BN) * FP8_PITCH;
        fp8_copy<FP8_BM>(to, g.a, g.a_stride, row, g.m, i * FP8_BK, g.k, g.aligned);
        fp8_copy<FP8_BN>(to + FP8_BM * FP8_PITCH, b, g.b_stride, column, g.n, i * FP8_BK, g.k, g.aligned);
    };
    __syncthreads(); /* all are done with the tile of another expert */
    if (blocks > 0) copy(0);
    fkd_copy_commit();
    for (int64_t i = 0; i < blocks; i++) {
        fkd_copy_wait<0>();
        __syncthreads(); /* block i is there for all, and all are done with block i - 1 */
        if (i + 1 < blocks) copy(i + 1);
        fkd_copy_commit();
        const uint32_t a_at = fkd_shared_address(shared) + (uint32_t)(i % 2) * (FP8_BM + FP8_BN) * FP8_PITCH;
        float part[2][4][4] = {};
        fp8_multiply(part, a_at + warp / 4 * 32 * FP8_PITCH, a_at + (FP8_BM + warp % 4 * 32) * FP8_PITCH);
        const float factor = b_scale[i * g.b_scale_group];
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int64_t at = row + first + 16 * m + 8 * half;
                const float scale = at < g.m ? g.a_scale[at * g.a_scale_row + i * g.a_scale_group] * factor : 0.0f;
#pragma unroll
                for (int n = 0; n < 4; n++)
#pragma unroll
                    for (int j = 0; j < 2; j++) sum[m][n][2 * half + j] += part[m][n][2 * half + j] * scale;
            }
    }
    fkd_copy_wait<0>();
}

/* Writes the rows of the tile whose expert it is. */
template <typename T>
static __device__ __forceinline__ void fp8_write(const float (&sum)[2][4][4], const fp8_gemm &g, int64_t row, int64_t column,
                                                 const int *experts, int expert)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / 4 * 32 + lane / 4;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = first + 16 * m + 8 * half;
            if (row + r >= g.m || experts[r] != expert) continue;
            T *out = (T *)g.out + (row + r) * g.out_stride;
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const int64_t at = column + warp % 4 * 32 + 8 * n + 2 * (lane % 4) + j;
                    if (at < g.n) out[at] = fkd_round<T>(sum[m][n][2 * half + j]);
                }
        }
}

/* Grid (tile of columns, tile of rows). The experts of a tile's rows are done one after another, the lowest first; one as a
 * rule. Negative and too large ones give zeros. */
template <typename T> static __global__ void __launch_bounds__(FP8_THREADS, 2) fp8_gemm_kernel(fp8_gemm g)
{
    extern __shared__ __align__(16) unsigned char fp8_shared[];
    __shared__ int experts[FP8_BM];
    const int64_t row = (int64_t)blockIdx.y * FP8_BM, column = (int64_t)blockIdx.x * FP8_BN;
    for (int r = threadIdx.x; r < FP8_BM; r += FP8_THREADS) {
        const int expert = row + r < g.m ? g.experts ? g.experts[row + r] : 0 : -1;
        experts[r] = expert < g.num_experts ? expert : -1;
    }
    __syncthreads();
    float zeros[2][4][4] = {};
    fp8_write<T>(zeros, g, row, column, experts, -1);
    for (int done = -1;;) {
        int next = INT32_MAX;
        for (int r = 0; r < FP8_BM; r++)
            if (experts[r] > done) next = min(next, experts[r]);
        if (next == INT32_MAX) break;
        float sum[2][4][4] = {};
        fp8_tile(sum, g, row, column, next, fp8_shared);
        fp8_write<T>(sum, g, row, column, experts, next);
        done = next;
    }
}

static inline fk_status fp8_gemm_launch(fk_ctx *ctx, cudaStream_t stream, fp8_gemm *g, fk_dtype out_dtype, const char *op)
{
    g->aligned = g->k % 16 == 0 && fkp_cuda_aligned16(g->a, g->a_stride) && fkp_cuda_aligned16(g->b, g->b_stride | g->b_expert);
    const int64_t rows = (g->m + FP8_BM - 1) / FP8_BM, columns = (g->n + FP8_BN - 1) / FP8_BN;
    if (rows == 0 || columns == 0) return FK_OK;
    if (rows > 65535 || columns > INT32_MAX)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld x %lld outputs are more than a grid holds", (long long)g->m, (long long)g->n);
    const dim3 grid((unsigned)columns, (unsigned)rows);
    FK_DISPATCH_FLOAT(
        out_dtype, T,
        FK_TRY(fk_cuda_status(ctx, cudaFuncSetAttribute(fp8_gemm_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, FP8_SHARED_BYTES),
                              op));
        fp8_gemm_kernel<T><<<grid, FP8_THREADS, FP8_SHARED_BYTES, stream>>>(*g));
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

#endif
