/* SPDX-License-Identifier: Apache-2.0 */
/* Table lookup on the CPU: all indices are checked first, then rows are copied, split over threads. */
#include <string.h>

#include "core/cpu_op.h"
#include "core/threads.h"

#define GRAIN_BYTES 65536 /* below this a second thread costs more than it saves */

static int64_t index_at(const fk_tensor *indices, int64_t t)
{
    return indices->dtype == FK_I32 ? ((const int32_t *)indices->data)[t] : ((const int64_t *)indices->data)[t];
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_embedding_args *a = user;
    size_t size = (size_t)fk_dtype_bits(a->weight->dtype) / 8, row = (size_t)a->weight->shape[1] * size;
    size_t in_stride = (size_t)a->weight->strides[0] * size, out_stride = (size_t)fk_row_stride(a->output) * size;
    for (int64_t t = begin; t < end; t++)
        memcpy((char *)a->output->data + (size_t)t * out_stride,
               (const char *)a->weight->data + (size_t)index_at(a->indices, t) * in_stride, row);
}

static fk_status run(fk_ctx *ctx, const fk_embedding_args *a)
{
    int64_t n = fk_tensor_numel(a->indices), v = a->weight->shape[0];
    for (int64_t t = 0; t < n; t++) {
        int64_t index = index_at(a->indices, t);
        if (index < 0 || index >= v)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "indices[%lld] is %lld, outside [0, %lld)", (long long)t,
                               (long long)index, (long long)v);
    }
    int64_t row_bytes = a->weight->shape[1] * fk_dtype_bits(a->weight->dtype) / 8;
    if (n == 0 || row_bytes == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), n, 1 + GRAIN_BYTES / row_bytes, rows_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_embedding_args *a)
{
    return fk_tensor_is_contiguous(a->indices) && fk_tensor_has_rows(a->weight) && fk_tensor_has_rows(a->output);
}

FK_CPU_OP_IF(embedding, run, supports);
