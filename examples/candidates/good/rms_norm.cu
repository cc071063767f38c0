/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm on CUDA: one block a row. The row is read once, 16 bytes a thread and step, and kept in registers while the block
 * adds up the squares; rows longer than that are read again from cache. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

namespace {

template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

/* Sum over the block, in every thread. Shared memory: 33 floats. */
__device__ float block_sum(float x)
{
    __shared__ float partial[33];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    if (lane == 0) partial[warp] = x;
    __syncthreads();
    if (warp == 0) {
        x = lane < warps ? partial[lane] : 0;
        for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
        if (lane == 0) partial[32] = x;
    }
    __syncthreads();
    return partial[32];
}

/* A thread owns vectors threadIdx.x, threadIdx.x + blockDim.x, ...; the first KEEP of them stay in registers. */
template <typename T, typename W, int N, int KEEP>
__global__ void norm_kernel(T *__restrict__ result, const T *__restrict__ input, const W *__restrict__ weight, int64_t d,
                            int64_t in_stride, int64_t out_stride, float epsilon)
{
    input += blockIdx.x * in_stride;
    result += blockIdx.x * out_stride;
    int64_t groups = d / N;
    pack<T, N> kept[KEEP];
    float sum = 0;
#pragma unroll
    for (int s = 0; s < KEEP; s++) {
        int64_t g = threadIdx.x + (int64_t)s * blockDim.x;
        if (g >= groups) continue;
        kept[s] = *(const pack<T, N> *)(input + g * N);
#pragma unroll
        for (int k = 0; k < N; k++) sum += (float)kept[s].v[k] * (float)kept[s].v[k];
    }
    for (int64_t g = threadIdx.x + (int64_t)KEEP * blockDim.x; g < groups; g += blockDim.x) {
        pack<T, N> x = *(const pack<T, N> *)(input + g * N);
#pragma unroll
        for (int k = 0; k < N; k++) sum += (float)x.v[k] * (float)x.v[k];
    }
    float scale = rsqrtf(block_sum(sum) / (float)d + epsilon);
#pragma unroll
    for (int s = 0; s < KEEP; s++) {
        int64_t g = threadIdx.x + (int64_t)s * blockDim.x;
        if (g >= groups) continue;
#pragma unroll
        for (int k = 0; k < N; k++) {
            float w = weight ? (float)weight[g * N + k] : 1;
            kept[s].v[k] = (T)((float)kept[s].v[k] * scale * w);
        }
        *(pack<T, N> *)(result + g * N) = kept[s];
    }
    for (int64_t g = threadIdx.x + (int64_t)KEEP * blockDim.x; g < groups; g += blockDim.x) {
        pack<T, N> x = *(const pack<T, N> *)(input + g * N);
#pragma unroll
        for (int k = 0; k < N; k++) x.v[k] = (T)((float)x.v[k] * scale * (weight ? (float)weight[g * N + k] : 1));
        *(pack<T, N> *)(result + g * N) = x;
    }
}

template <typename T, typename W> int launch(const fk_rms_norm_args *a)
{
    constexpr int N = 16 / sizeof(T), KEEP = 4;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    T *result = FK_PTR(T, a->result);
    const T *input = FK_PTR(const T, a->input);
    const W *weight = FK_PTR(const W, a->weight);
    cudaStream_t stream = (cudaStream_t)fk_candidate_stream(a->input);
    bool wide = d % N == 0 && in_stride % N == 0 && out_stride % N == 0 && ((uintptr_t)result | (uintptr_t)input) % 16 == 0;
    int64_t groups = wide ? d / N : d;
    int threads = groups >= 4096 ? 1024 : groups >= 512 ? 512 : groups >= 128 ? 256 : 64;
    if (wide && groups <= 512) threads = groups > 256 ? 256 : threads; /* two or fewer vectors a thread: more blocks at once */
    if (wide) norm_kernel<T, W, N, KEEP><<<(unsigned)rows, threads, 0, stream>>>(result, input, weight, d, in_stride, out_stride, a->epsilon);
    else norm_kernel<T, W, 1, KEEP><<<(unsigned)rows, threads, 0, stream>>>(result, input, weight, d, in_stride, out_stride, a->epsilon);
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
