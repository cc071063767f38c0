/* SPDX-License-Identifier: Apache-2.0 */
/* Table lookup on CUDA: rows are copied as bits. Memory-bound; the index of a row is one more trip to memory
 * before the row itself, so many rows are in flight at once (up to 8 blocks of 8 KiB a multiprocessor). An
 * index outside the table leaves zeros. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define THREADS 256
#define UNITS 2 /* a thread: 32 bytes in flight */

namespace
{

/* output [tokens, units], weight [vocabulary, units] in units of 16 bytes, or of one element where rows are
 * not aligned. Block b works on THREADS * UNITS units of token b / parts. */
template <typename Unit, typename I>
__global__ void __launch_bounds__(THREADS)
    embedding_kernel(Unit *__restrict__ output, const Unit *__restrict__ weight,
                     const I *__restrict__ indices, int64_t vocabulary, int64_t units, int parts,
                     int64_t weight_stride, int64_t out_stride)
{
    int64_t token = blockIdx.x / (unsigned)parts;
    int64_t first = (int64_t)(blockIdx.x % (unsigned)parts) * THREADS * UNITS + threadIdx.x;
    int64_t index = indices[token];
    bool inside = index >= 0 && index < vocabulary;
    const Unit *row = weight + (inside ? index : 0) * weight_stride;
    Unit copy[UNITS] = {};
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        if (inside && first + k * THREADS < units) copy[k] = __ldcg(row + first + k * THREADS);
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        if (first + k * THREADS < units) output[token * out_stride + first + k * THREADS] = copy[k];
}

template <typename Unit> fk_status launch(cudaStream_t stream, const fk_embedding_args *a)
{
    int64_t tokens, d, size = fk_dtype_bits(a->weight->dtype) / 8, per_unit = (int64_t)sizeof(Unit) / size;
    fk_rows_cols(a->output, &tokens, &d);
    int64_t units = d / per_unit, parts = (units + THREADS * UNITS - 1) / (THREADS * UNITS);
    if (tokens * parts > INT32_MAX)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows of %lld are more than a grid holds",
                       (long long)tokens, (long long)d);
    FK_DISPATCH_INT(a->indices->dtype, I,
                    embedding_kernel<Unit, I><<<(unsigned)(tokens * parts), THREADS, 0, stream>>>(
                        FK_PTR(Unit, a->output), FK_PTR(const Unit, a->weight), FK_PTR(const I, a->indices),
                        a->weight->shape[0], units, (int)parts, fk_row_stride(a->weight) / per_unit,
                        fk_row_stride(a->output) / per_unit));
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
