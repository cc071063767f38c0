/* SPDX-License-Identifier: Apache-2.0 */
/* One thread an element. */
__global__ static void silu_and_mul_kernel(fk_tensor result, fk_tensor input, int64_t count, int64_t d)
{
    int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    int64_t row = at / d, i = at % d;
    float gate = load(&input, 2 * row * d + i), value = load(&input, 2 * row * d + d + i);
    store(&result, at, gate / (1 + expf(-gate)) * value);
}

FK_CANDIDATE(silu_and_mul)
{
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    if (rows * d == 0) return 0;
    cudaStream_t stream = (cudaStream_t)fk_candidate_stream(a->input);
    silu_and_mul_kernel<<<(unsigned)((rows * d + 255) / 256), 256, 0, stream>>>(*a->result, *a->input, rows * d, d);
    return cudaGetLastError() == cudaSuccess ? 0 : fk_candidate_error("launch failed");
}
