/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU's gate on CUDA: one thread makes one 16-byte vector of results from two of inputs; with rows or addresses that do not
 * allow that, one element. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

#define THREADS 256

namespace {

template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

/* input [rows, 2*d], result [rows, d] with the given row strides; a thread owns N neighbouring results of a row. */
template <typename T, int N>
__global__ void gate_kernel(T *__restrict__ result, const T *__restrict__ input, int64_t rows, int64_t d, int64_t in_stride,
                            int64_t out_stride)
{
    int64_t groups = d / N, index = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= rows * groups) return;
    int64_t r = index / groups, i = index % groups * N;
    pack<T, N> gate = *(const pack<T, N> *)(input + r * in_stride + i);
    pack<T, N> value = *(const pack<T, N> *)(input + r * in_stride + d + i), out;
#pragma unroll
    for (int k = 0; k < N; k++) {
        float g = (float)gate.v[k];
        out.v[k] = (T)(__fdividef(g, 1 + __expf(-g)) * (float)value.v[k]);
    }
    *(pack<T, N> *)(result + r * out_stride + i) = out;
}

template <typename T> int launch(const fk_silu_and_mul_args *a)
{
    constexpr int N = 16 / sizeof(T);
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->result, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    T *result = FK_PTR(T, a->result);
    const T *input = FK_PTR(const T, a->input);
    cudaStream_t stream = (cudaStream_t)fk_candidate_stream(a->input);
    bool wide = d % N == 0 && in_stride % N == 0 && out_stride % N == 0 && ((uintptr_t)result | (uintptr_t)input) % 16 == 0;
    int64_t threads = rows * (wide ? d / N : d), blocks = (threads + THREADS - 1) / THREADS;
    if (wide) gate_kernel<T, N><<<(unsigned)blocks, THREADS, 0, stream>>>(result, input, rows, d, in_stride, out_stride);
    else gate_kernel<T, 1><<<(unsigned)blocks, THREADS, 0, stream>>>(result, input, rows, d, in_stride, out_stride);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : fk_candidate_error(cudaGetErrorString(error));
}

} // namespace

FK_CANDIDATE(silu_and_mul)
{
    switch (a->input->dtype) {
    case FK_F32: return launch<float>(a);
    case FK_F16: return launch<__half>(a);
    default: return launch<__nv_bfloat16>(a);
    }
}
