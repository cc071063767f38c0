/* SPDX-License-Identifier: Apache-2.0 */
/* Its kernel never ends. Expected: TIMEOUT. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

#define THREADS 256

template <typename T>
__global__ void gate_kernel(T *result, const T *input, int64_t rows, int64_t d, int64_t in_stride, int64_t out_stride)
{
    int64_t index = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= rows * d) return;
    int64_t r = index / d, i = index % d;
    float gate = (float)input[r * in_stride + i], value = (float)input[r * in_stride + d + i];
    result[r * out_stride + i] = (T)(gate / (1 + __expf(-gate)) * value);
    while (clock64() != 0) {} /* a loop without effect would be compiled away */
}

template <typename T> static int launch(const fk_silu_and_mul_args *a)
{
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    unsigned blocks = (unsigned)((rows * d + THREADS - 1) / THREADS);
    cudaStream_t stream = (cudaStream_t)fk_candidate_stream(a->input);
    gate_kernel<<<blocks, THREADS, 0, stream>>>(FK_PTR(T, a->result), FK_PTR(const T, a->input), rows, d, fk_row_stride(a->input),
                                                fk_row_stride(a->result));
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : fk_candidate_error(cudaGetErrorString(error));
}

FK_CANDIDATE(silu_and_mul)
{
    switch (a->input->dtype) {
    case FK_F32: return launch<float>(a);
    case FK_F16: return launch<__half>(a);
    default: return launch<__nv_bfloat16>(a);
    }
}
