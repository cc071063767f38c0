/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's SwiGLU block on CUDA. Up to four tokens (a decode step) stream the weights in two kernels of their own: one warp
 * multiplies a gate row and its up row with every token and gates the result at once, then one warp a row projects back; the time
 * is that of reading the weights. More tokens go through the operators below, which have matrix units. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

#define MAX_TOKENS 4
#define WARPS 4

namespace {

template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

__device__ float warp_sum(float x)
{
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    return x;
}

/* ROWS weight rows times TOKENS rows of x, over k features (a multiple of N), by one warp. Two vectors of each row are in
 * flight a step; sums are complete in every lane. */
template <typename T, int ROWS, int TOKENS>
__device__ void dots(const T *const *w, const T *x, int64_t x_stride, int64_t k, float sums[ROWS][TOKENS])
{
    constexpr int N = 16 / sizeof(T);
    int lane = threadIdx.x % 32;
    for (int r = 0; r < ROWS; r++)
        for (int t = 0; t < TOKENS; t++) sums[r][t] = 0;
#pragma unroll 2
    for (int64_t i = lane * N; i < k; i += 32 * N) {
        pack<T, N> row[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) row[r] = *(const pack<T, N> *)(w[r] + i);
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            pack<T, N> v = *(const pack<T, N> *)(x + t * x_stride + i);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int n = 0; n < N; n++) sums[r][t] += (float)row[r].v[n] * (float)v.v[n];
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int t = 0; t < TOKENS; t++) sums[r][t] = warp_sum(sums[r][t]);
}

/* gated [TOKENS, inner]: a warp owns one column. */
template <typename T, int TOKENS>
__global__ void gate_up_kernel(T *__restrict__ gated, const T *__restrict__ x, int64_t x_stride, const T *__restrict__ gate_up,
                               int64_t inner, int64_t d)
{
    int64_t n = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (n >= inner) return;
    const T *rows[2] = {gate_up + n * d, gate_up + (inner + n) * d};
    float sums[2][TOKENS];
    dots<T, 2, TOKENS>(rows, x, x_stride, d, sums);
    if (threadIdx.x % 32) return;
    for (int t = 0; t < TOKENS; t++) { /* rounded to T between the steps, as the composition does */
        float gate = (float)(T)sums[0][t], up = (float)(T)sums[1][t];
        gated[t * inner + n] = (T)(gate / (1 + __expf(-gate)) * up);
    }
}

/* y [TOKENS, d]: a warp owns one column. */
template <typename T, int TOKENS>
__global__ void down_kernel(T *__restrict__ y, int64_t y_stride, const T *__restrict__ gated, const T *__restrict__ down,
                            int64_t inner, int64_t d)
{
    int64_t n = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (n >= d) return;
    const T *rows[1] = {down + n * inner};
    float sums[1][TOKENS];
    dots<T, 1, TOKENS>(rows, gated, inner, inner, sums);
    if (threadIdx.x % 32) return;
    for (int t = 0; t < TOKENS; t++) y[t * y_stride + n] = (T)sums[0][t];
}

template <typename T, int TOKENS> void stream_weights(const fk_llama_mlp_args *a, T *gated, int64_t inner, int64_t d, cudaStream_t s)
{
    gate_up_kernel<T, TOKENS><<<(unsigned)((inner + WARPS - 1) / WARPS), 32 * WARPS, 0, s>>>(
        gated, FK_PTR(const T, a->x), fk_row_stride(a->x), FK_PTR(const T, a->gate_up_proj), inner, d);
    down_kernel<T, TOKENS><<<(unsigned)((d + WARPS - 1) / WARPS), 32 * WARPS, 0, s>>>(
        FK_PTR(T, a->output), fk_row_stride(a->output), gated, FK_PTR(const T, a->down_proj), inner, d);
}

template <typename T> int few_tokens(const fk_llama_mlp_args *a, int64_t tokens, int64_t inner, int64_t d)
{
    fk_scratch scratch;
    if (fk_scratch_alloc(a->x, tokens * inner * (int64_t)sizeof(T), &scratch) != 0) return -1;
    T *gated = (T *)scratch.data;
    cudaStream_t s = (cudaStream_t)fk_candidate_stream(a->x);
    switch (tokens) {
    case 1: stream_weights<T, 1>(a, gated, inner, d, s); break;
    case 2: stream_weights<T, 2>(a, gated, inner, d, s); break;
    case 3: stream_weights<T, 3>(a, gated, inner, d, s); break;
    default: stream_weights<T, 4>(a, gated, inner, d, s); break;
    }
    fk_scratch_free(&scratch);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : fk_candidate_error(cudaGetErrorString(error));
}

/* Through linear and silu_and_mul, as the reference composes it. */
int compose(const fk_llama_mlp_args *a, int64_t tokens, int64_t inner)
{
    fk_scratch scratch;
    int64_t size = a->x->dtype == FK_F32 ? 4 : 2;
    if (fk_scratch_alloc(a->x, 3 * tokens * inner * size, &scratch) != 0) return -1;
    fk_tensor both = {scratch.data, a->x->dtype, 2, a->x->device, {tokens, 2 * inner}, {2 * inner, 1}};
    fk_tensor gated = {(char *)scratch.data + 2 * tokens * inner * size, a->x->dtype, 2, a->x->device, {tokens, inner}, {inner, 1}};
    fk_tensor x = *a->x, y = *a->output;
    x.ndim = y.ndim = 2; /* rows */
    x.shape[0] = y.shape[0] = tokens;
    x.shape[1] = a->x->shape[a->x->ndim - 1], y.shape[1] = a->output->shape[a->output->ndim - 1];
    x.strides[0] = fk_row_stride(a->x), y.strides[0] = fk_row_stride(a->output);
    x.strides[1] = y.strides[1] = 1;
    fk_linear_args up = {&both, &x, a->gate_up_proj, NULL};
    fk_silu_and_mul_args gate = {&gated, &both};
    fk_linear_args down = {&y, &gated, a->down_proj, NULL};
    int status = fk_lower_linear(&up) || fk_lower_silu_and_mul(&gate) || fk_lower_linear(&down) ? -1 : 0;
    fk_scratch_free(&scratch);
    return status;
}

} // namespace

FK_CANDIDATE(llama_mlp)
{
    int64_t tokens, d, inner = a->down_proj->shape[1];
    fk_rows_cols(a->x, &tokens, &d);
    if (tokens == 0 || d == 0) return 0;
    int64_t vector = a->x->dtype == FK_F32 ? 4 : 8;
    bool same = a->gate_up_proj->dtype == a->x->dtype && a->down_proj->dtype == a->x->dtype;
    bool wide = d % vector == 0 && inner % vector == 0 && fk_row_stride(a->x) % vector == 0 &&
                ((uintptr_t)a->x->data | (uintptr_t)a->gate_up_proj->data | (uintptr_t)a->down_proj->data) % 16 == 0 &&
                fk_row_stride(a->gate_up_proj) == d && fk_row_stride(a->down_proj) == inner;
    if (tokens > MAX_TOKENS || !same || !wide) return compose(a, tokens, inner);
    switch (a->x->dtype) {
    case FK_F32: return few_tokens<float>(a, tokens, inner, d);
    case FK_F16: return few_tokens<__half>(a, tokens, inner, d);
    default: return few_tokens<__nv_bfloat16>(a, tokens, inner, d);
    }
}
