/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layer on CUDA. Products of one dtype go to cuBLASLt (core/cuda_blas.h). Up to 8 rows, the decode
 * step, the product is bound by reading the weight, and a kernel of ours competes: tensor cores take 16
 * weight rows as their left operand and the rows of x as their 8 columns, both loaded straight from memory
 * with 16-byte loads. Mixed dtypes and layouts that cuBLASLt refuses take a plain tiled kernel. */
#include "core/cuda_blas.h"
#include "core/cuda_mma.h"
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define SKINNY_M 8         /* columns of one mma */
#define SKINNY_FEATURES 16 /* rows of one mma: weight rows a block */
#define SKINNY_WARPS 8     /* they share the weight rows and split k */
#define SKINNY_THREADS (32 * SKINNY_WARPS)
#define STEPS 4 /* of 32 elements: one group is 256 bytes of each weight row, 4 KiB in flight a warp */
#define GROUP (32 * STEPS)
#define TILE 16 /* of the plain kernel */

namespace
{

/* Weight elements of one group for a lane: of rows lane/4 and lane/4 + 8, 8 elements a step. */
struct weights {
    uint4 low[STEPS], high[STEPS];
};

template <typename T>
__device__ __forceinline__ void load_weights(weights &w, const T *low, const T *high, int64_t at, int64_t k)
{
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        bool inside = at + 32 * i < k;
        w.low[i] = inside ? fkd_load_once(low + at + 32 * i) : make_uint4(0, 0, 0, 0);
        w.high[i] = inside ? fkd_load_once(high + at + 32 * i) : make_uint4(0, 0, 0, 0);
    }
}

/* out [m, n] = x [m, k] weight[n, k]^T + bias, m at most 8, k a multiple of 8, rows 16-byte aligned. Block:
 * 16 features; warp w: groups w, w + 8, ... of 128 elements of k. Within a step of 32 elements a lane holds
 * elements 8 (l%4) to 8 (l%4) + 7 of its rows: another order of k than the instruction's, but the same one on
 * both sides, and a sum has no order. The next group is loaded before the present one is multiplied. The
 * warps' sums meet in 4 KiB of shared memory. */
template <typename T>
__global__ void __launch_bounds__(SKINNY_THREADS, 2)
    skinny_kernel(T *__restrict__ out, const T *__restrict__ x, const T *__restrict__ weight,
                  const T *__restrict__ bias, int m, int64_t n, int64_t k, int64_t x_stride,
                  int64_t weight_stride, int64_t out_stride)
{
    __shared__ float sums[SKINNY_WARPS][SKINNY_M][SKINNY_FEATURES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4;
    const int64_t feature = (int64_t)blockIdx.x * SKINNY_FEATURES;
    const int64_t last = n - 1; /* features past the end repeat it and are not written */
    const T *low = weight + (feature + row < last ? feature + row : last) * weight_stride;
    const T *high = weight + (feature + row + 8 < last ? feature + row + 8 : last) * weight_stride;
    const T *column = x + (row < m ? row : 0) * x_stride;
    float c[4] = {0, 0, 0, 0};
    int64_t at = (int64_t)warp * GROUP + 8 * (lane % 4);
    weights next;
    load_weights(next, low, high, at, k);
    for (; at < k + 8 * (lane % 4); at += (int64_t)SKINNY_WARPS * GROUP) {
        weights w = next;
        load_weights(next, low, high, at + (int64_t)SKINNY_WARPS * GROUP, k);
        uint4 b[STEPS];
#pragma unroll
        for (int i = 0; i < STEPS; i++)
            b[i] = row < m && at + 32 * i < k ? fkd_load_shared_by_blocks(column + at + 32 * i)
                                              : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            fkd_mma<T>(c, {w.low[i].x, w.high[i].x, w.low[i].y, w.high[i].y}, b[i].x, b[i].y);
            fkd_mma<T>(c, {w.low[i].z, w.high[i].z, w.low[i].w, w.high[i].w}, b[i].z, b[i].w);
        }
    }
    sums[warp][2 * (lane % 4)][row] = c[0];
    sums[warp][2 * (lane % 4) + 1][row] = c[1];
    sums[warp][2 * (lane % 4)][row + 8] = c[2];
    sums[warp][2 * (lane % 4) + 1][row + 8] = c[3];
    __syncthreads();
    int i = threadIdx.x % SKINNY_FEATURES, j = threadIdx.x / SKINNY_FEATURES;
    if (j >= m || feature + i >= n) return;
    float sum = bias ? fkd_float(bias[feature + i]) : 0.0f;
#pragma unroll
    for (int w = 0; w < SKINNY_WARPS; w++) sum += sums[w][j][i];
    out[j * out_stride + feature + i] = fkd_round<T>(sum);
}

cudaError_t launch_skinny(const fkp_blas_problem *p, cudaStream_t stream)
{
    unsigned blocks = (unsigned)((p->n + SKINNY_FEATURES - 1) / SKINNY_FEATURES);
    if (p->dtype == FK_BF16)
        skinny_kernel<__nv_bfloat16><<<blocks, SKINNY_THREADS, 0, stream>>>(
            (__nv_bfloat16 *)p->out, (const __nv_bfloat16 *)p->x, (const __nv_bfloat16 *)p->weight,
            (const __nv_bfloat16 *)p->bias, (int)p->m, p->n, p->k, p->x_stride, p->weight_stride,
            p->out_stride);
    else
        skinny_kernel<__half><<<blocks, SKINNY_THREADS, 0, stream>>>(
            (__half *)p->out, (const __half *)p->x, (const __half *)p->weight, (const __half *)p->bias,
            (int)p->m, p->n, p->k, p->x_stride, p->weight_stride, p->out_stride);
    return cudaGetLastError();
}

bool skinny_fits(const fkp_blas_problem *p)
{
    return p->dtype != FK_F32 && p->m <= SKINNY_M && p->k % 8 == 0 &&
           p->n <= (int64_t)INT32_MAX * SKINNY_FEATURES && fkp_cuda_aligned16(p->x, 2 * p->x_stride) &&
           fkp_cuda_aligned16(p->weight, 2 * p->weight_stride);
}

/* Any dtypes and strides: block: a 16x16 tile of the output, one element a thread. */
__global__ void __launch_bounds__(TILE *TILE)
    plain_kernel(void *out, int out_dtype, const void *x, int x_dtype, const void *weight, int weight_dtype,
                 const void *bias, int bias_dtype, int64_t m, int64_t n, int64_t k, int64_t x_stride,
                 int64_t weight_stride, int64_t out_stride)
{
    __shared__ float xs[TILE][TILE + 1], ws[TILE][TILE + 1];
    int i = threadIdx.x, j = threadIdx.y;
    int64_t tiles = (n + TILE - 1) / TILE;
    int64_t column = (int64_t)(blockIdx.x % tiles) * TILE, row = (int64_t)(blockIdx.x / tiles) * TILE;
    float sum = 0;
    for (int64_t at = 0; at < k; at += TILE) {
        xs[j][i] = row + j < m && at + i < k ? fkd_load_any(x, x_dtype, (row + j) * x_stride + at + i) : 0.0f;
        ws[j][i] = column + j < n && at + i < k
                       ? fkd_load_any(weight, weight_dtype, (column + j) * weight_stride + at + i)
                       : 0.0f;
        __syncthreads();
#pragma unroll
        for (int s = 0; s < TILE; s++) sum += xs[j][s] * ws[i][s];
        __syncthreads();
    }
    if (row + j >= m || column + i >= n) return;
    if (bias) sum += fkd_load_any(bias, bias_dtype, column + i);
    int64_t to = (row + j) * out_stride + column + i;
    if (out_dtype == FK_F32)
        ((float *)out)[to] = sum;
    else if (out_dtype == FK_F16)
        ((__half *)out)[to] = __float2half_rn(sum);
    else
        ((__nv_bfloat16 *)out)[to] = __float2bfloat16_rn(sum);
}

fk_status launch_plain(fk_ctx *ctx, cudaStream_t stream, const fk_linear_args *a, const fkp_blas_problem *p)
{
    int64_t blocks = (p->n + TILE - 1) / TILE * ((p->m + TILE - 1) / TILE);
    if (blocks > INT32_MAX)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld x %lld outputs are more than a grid holds",
                       (long long)p->m, (long long)p->n);
    plain_kernel<<<(unsigned)blocks, dim3(TILE, TILE), 0, stream>>>(
        p->out, a->output->dtype, p->x, a->input->dtype, p->weight, a->weight->dtype, p->bias,
        a->bias ? a->bias->dtype : 0, p->m, p->n, p->k, p->x_stride, p->weight_stride, p->out_stride);
    return fk_cuda_status(ctx, cudaGetLastError(), "linear");
}

} // namespace

extern "C" fk_status fk_linear_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_linear_args *a)
{
    fkp_blas_problem p = {};
    fk_rows_cols(a->output, &p.m, &p.n);
    if (p.m == 0 || p.n == 0) return FK_OK;
    p.k = a->weight->shape[1];
    p.dtype = a->input->dtype;
    p.x = a->input->data, p.x_stride = fk_row_stride(a->input);
    p.weight = a->weight->data, p.weight_stride = fk_row_stride(a->weight);
    p.out = a->output->data, p.out_stride = fk_row_stride(a->output);
    p.bias = FK_PTR(const void, a->bias);
    bool one_dtype = a->weight->dtype == p.dtype && (!a->bias || a->bias->dtype == p.dtype);
    bool rows_apart = p.x_stride >= p.k && p.weight_stride >= p.k && p.out_stride >= p.n;
    /* On rows that are not 16-byte aligned cuBLASLt's kernels round the product before they add the bias. */
    bool rounds_twice = p.bias && p.dtype != FK_F32 &&
                        !(fkp_cuda_aligned16(p.x, 2 * p.x_stride) && fkp_cuda_aligned16(p.weight, 2 * p.weight_stride) &&
                          fkp_cuda_aligned16(p.out, 2 * p.out_stride));
    if (!one_dtype || !rows_apart || rounds_twice || p.k == 0) return launch_plain(ctx, stream, a, &p);
    p.workspace_bytes = FKP_BLAS_WORKSPACE_BYTES;
    p.workspace = fk_ctx_scratch(ctx, p.workspace_bytes);
    if (!p.workspace) return fk_ctx_status(ctx);
    bool done = true;
    FK_TRY(fkp_blas_linear_or(&p, skinny_fits(&p) ? launch_skinny : nullptr, stream, &done));
    return done ? FK_OK : launch_plain(ctx, stream, a, &p);
}

static bool supports(const fk_linear_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->weight) && fk_tensor_has_rows(a->output) &&
           (!a->bias || fk_tensor_is_contiguous(a->bias));
}

FK_CUDA_OP_IF(linear, supports)
