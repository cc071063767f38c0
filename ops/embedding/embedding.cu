/* SPDX-License-Identifier: Apache-2.0 */
/* Table lookup on CUDA: rows are copied as bits. Memory-bound; the index of a row is one more trip to memory
 * before the row itself, so a thread looks two of them up at once and many blocks are in flight. An
 * index outside the table leaves zeros. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define THREADS 512
#define ROWS 2 /* a thread: 32 bytes in flight, behind one look-up */

namespace
{

/* output [tokens, units], weight [vocabulary, units] in units of 16 bytes, or of one element where rows are not aligned.
 * Block b works on units [part * THREADS, ...) of ROWS tokens; their indices are looked up together. FULL: all of them exist. */
template <typename Unit, typename I, bool FULL>
__global__ void __launch_bounds__(THREADS)
    embedding_kernel(Unit *__restrict__ output, const Unit *__restrict__ weight,
                     const I *__restrict__ indices, int64_t tokens, int64_t vocabulary, int64_t units, int parts,
                     int64_t weight_stride, int64_t out_stride)
{
    int64_t token = (int64_t)(blockIdx.x / (unsigned)parts) * ROWS;
    int64_t unit = (int64_t)(blockIdx.x % (unsigned)parts) * THREADS + threadIdx.x;
    int64_t index[ROWS];
    Unit copy[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) index[r] = FULL || token + r < tokens ? (int64_t)indices[token + r] : -1;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (index[r] >= 0 && index[r] < vocabulary && (FULL || unit < units))
            copy[r] = __ldcg(weight + index[r] * weight_stride + unit);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (FULL || (token + r < tokens && unit < units)) output[(token + r) * out_stride + unit] = copy[r];
}

template <typename Unit> fk_status launch(cudaStream_t stream, const fk_embedding_args *a)
{
    int64_t tokens, d, size = fk_dtype_bits(a->weight->dtype) / 8, per_unit = (int64_t)sizeof(Unit) / size;
    fk_rows_cols(a->output, &tokens, &d);
    int64_t units = d / per_unit, parts = (units + THREADS - 1) / THREADS;
    int64_t groups = (tokens + ROWS - 1) / ROWS;
    bool full = tokens % ROWS == 0 && units % THREADS == 0;
    if (groups * parts > INT32_MAX)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows of %lld are more than a grid holds",
                       (long long)tokens, (long long)d);
    FK_DISPATCH_INT(a->indices->dtype, I, {
        auto *kernel = full ? embedding_kernel<Unit, I, true> : embedding_kernel<Unit, I, false>;
        kernel<<<(unsigned)(groups * parts), THREADS, 0, stream>>>(
            FK_PTR(Unit, a->output), FK_PTR(const Unit, a->weight), FK_PTR(const I, a->indices), tokens, a->weight->shape[0],
            units, (int)parts, fk_row_stride(a->weight) / per_unit, fk_row_stride(a->output) / per_unit);
    });
    return FK_OK;
}

} // namespace

extern "C" fk_status fk_embedding_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_embedding_args *a)
{
    if (fk_tensor_numel(a->output) == 0) return FK_OK;
    int64_t d = a->weight->shape[1], size = fk_dtype_bits(a->weight->dtype) / 8;
    bool packed = d * size % 16 == 0 &&
                  fkp_cuda_aligned16(a->weight->data, fk_row_stride(a->weight) * size) &&
                  fkp_cuda_aligned16(a->output->data, fk_row_stride(a->output) * size);
    FK_TRY(packed      ? launch<uint4>(stream, a)
           : size == 4 ? launch<uint32_t>(stream, a)
                       : launch<uint16_t>(stream, a));
    return fk_cuda_status(ctx, cudaGetLastError(), "embedding");
}

static bool supports(const fk_embedding_args *a)
{
    return fk_tensor_has_rows(a->weight) && fk_tensor_has_rows(a->output) &&
           fk_tensor_is_contiguous(a->indices);
}

FK_CUDA_OP_IF(embedding, supports)
