/* SPDX-License-Identifier: Apache-2.0 */
/* One block a row; sums through shared memory. */
__global__ static void rms_norm_kernel(fk_tensor result, fk_tensor input, fk_tensor weight, bool weighted, int64_t d, float epsilon)
{
    __shared__ float sums[256];
    int64_t row = (int64_t)blockIdx.x * d;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < d; i += 256) sum += load(&input, row + i) * load(&input, row + i);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    float scale = rsqrtf(sums[0] / (float)d + epsilon);
    for (int64_t i = threadIdx.x; i < d; i += 256)
        store(&result, row + i, load(&input, row + i) * scale * (weighted ? load(&weight, i) : 1));
}

FK_CANDIDATE(rms_norm)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    cudaStream_t stream = (cudaStream_t)fk_candidate_stream(a->input);
    fk_tensor none = {};
    rms_norm_kernel<<<(unsigned)rows, 256, 0, stream>>>(*a->result, *a->input, a->weight ? *a->weight : none, a->weight != NULL, d, a->epsilon);
    return cudaGetLastError() == cudaSuccess ? 0 : fk_candidate_error("launch failed");
}
