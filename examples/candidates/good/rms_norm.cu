/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm on CUDA: a warp, or for long rows a block, holds a row. The row is read once, 16 bytes a thread and step, and kept in
 * registers while its squares are added up; its weights are on their way by then. Rows longer than that are read again from
 * cache. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

namespace {

#define MAX_THREADS 512
#define KEEP 4 /* vectors of a row that a thread keeps in registers */

template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T v[N];
};

/* Sum over the block, in every thread. */
__device__ float block_sum(float x)
{
    __shared__ float partial[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    if (warps == 1) return x;
    if (lane == 0) partial[warp] = x;
    __syncthreads();
    x = lane < warps ? partial[lane] : 0;
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    return x;
}

template <typename T, int N> __device__ float squares(const pack<T, N> &x)
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < N; k++) sum += (float)x.v[k] * (float)x.v[k];
    return sum;
}

template <typename T, typename W, int N> __device__ pack<T, N> scaled(const pack<T, N> &x, const pack<W, N> &w, float scale)
{
    pack<T, N> y;
#pragma unroll
    for (int k = 0; k < N; k++) y.v[k] = (T)((float)x.v[k] * scale * (float)w.v[k]);
    return y;
}

/* N weights from element i on; ones where there is no weight. */
template <typename W, int N> __device__ pack<W, N> weights(const W *weight, int64_t i)
{
    if (weight) return *(const pack<W, N> *)(weight + i);
    pack<W, N> ones;
#pragma unroll
    for (int k = 0; k < N; k++) ones.v[k] = (W)1.0f;
    return ones;
}

/* A block is a row. A thread owns vectors threadIdx.x, threadIdx.x + blockDim.x, ...; the first KEEP of them stay in registers. */
template <typename T, typename W, int N>
__global__ void __launch_bounds__(MAX_THREADS)
    norm_kernel(T *__restrict__ result, const T *__restrict__ input, const W *__restrict__ weight, int64_t d,
                            int64_t in_stride, int64_t out_stride, float epsilon)
{
    input += blockIdx.x * in_stride;
    result += blockIdx.x * out_stride;
    int64_t groups = d / N;
    pack<T, N> kept[KEEP];
    pack<W, N> scales[KEEP];
    float sum = 0;
#pragma unroll
    for (int s = 0; s < KEEP; s++) {
        int64_t g = threadIdx.x + (int64_t)s * blockDim.x;
        if (g < groups) kept[s] = *(const pack<T, N> *)(input + g * N);
    }
#pragma unroll
    for (int s = 0; s < KEEP; s++) {
        int64_t g = threadIdx.x + (int64_t)s * blockDim.x;
        if (g < groups) scales[s] = weights<W, N>(weight, g * N);
    }
#pragma unroll
    for (int s = 0; s < KEEP; s++)
        if (threadIdx.x + (int64_t)s * blockDim.x < groups) sum += squares<T, N>(kept[s]);
    for (int64_t g = threadIdx.x + (int64_t)KEEP * blockDim.x; g < groups; g += blockDim.x)
        sum += squares<T, N>(*(const pack<T, N> *)(input + g * N));
    float scale = rsqrtf(block_sum(sum) / (float)d + epsilon);
#pragma unroll
    for (int s = 0; s < KEEP; s++) {
        int64_t g = threadIdx.x + (int64_t)s * blockDim.x;
        if (g < groups) *(pack<T, N> *)(result + g * N) = scaled<T, W, N>(kept[s], scales[s], scale);
    }
    for (int64_t g = threadIdx.x + (int64_t)KEEP * blockDim.x; g < groups; g += blockDim.x)
        *(pack<T, N> *)(result + g * N) = scaled<T, W, N>(*(const pack<T, N> *)(input + g * N), weights<W, N>(weight, g * N), scale);
}

template <typename T, typename W> int launch(const fk_rms_norm_args *a)
{
    constexpr int N = 16 / sizeof(T);
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    T *result = FK_PTR(T, a->result);
    const T *input = FK_PTR(const T, a->input);
    const W *weight = FK_PTR(const W, a->weight);
    cudaStream_t stream = (cudaStream_t)fk_candidate_stream(a->input);
    bool wide = d % N == 0 && in_stride % N == 0 && out_stride % N == 0 &&
                ((uintptr_t)result | (uintptr_t)input | (uintptr_t)weight) % 16 == 0;
    int64_t groups = wide ? d / N : d;
    int threads = 32; /* a warp needs no barrier: as long as it can keep the row */
    while (threads < MAX_THREADS && threads * (threads == 32 ? KEEP : 2) < groups) threads *= 2;
    if (wide) norm_kernel<T, W, N><<<(unsigned)rows, threads, 0, stream>>>(result, input, weight, d, in_stride, out_stride, a->epsilon);
    else norm_kernel<T, W, 1><<<(unsigned)rows, threads, 0, stream>>>(result, input, weight, d, in_stride, out_stride, a->epsilon);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : fk_candidate_error(cudaGetErrorString(error));
}

template <typename T> int with_weight(const fk_rms_norm_args *a)
{
    switch (a->weight ? a->weight->dtype : a->input->dtype) {
    case FK_F32: return launch<T, float>(a);
    case FK_F16: return launch<T, __half>(a);
    default: return launch<T, __nv_bfloat16>(a);
    }
}

} // namespace

FK_CANDIDATE(rms_norm)
{
    switch (a->input->dtype) {
    case FK_F32: return with_weight<float>(a);
    case FK_F16: return with_weight<__half>(a);
    default: return with_weight<__nv_bfloat16>(a);
    }
}
