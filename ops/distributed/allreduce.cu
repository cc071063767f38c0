/* SPDX-License-Identifier: Apache-2.0 */
/* Sum over ranks on GPUs: NCCL's, or a copy on one rank. NCCL adds in the tensors' dtype along its rings and
 * trees, so several ranks round more than once, unlike the reference. */
#include "core/cuda_nccl.h"
#include "core/cuda_op.h"

extern "C" fk_status fk_allreduce_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_allreduce_args *a)
{
    fk_communicator *group = fk_ctx_communicator(ctx);
    if (!group || group->size == 1) {
        fk_ctx_copy(ctx, *a->output, *a->input_);
        return fk_ctx_status(ctx);
    }
    fk_tensor sum = *a->output; /* NCCL takes dense memory */
    if (!fk_tensor_is_contiguous(&sum)) sum = fk_ctx_tensor(ctx, sum.dtype, sum.ndim, sum.shape);
    const void *summand = a->input_->data;
    if (!fk_tensor_is_contiguous(a->input_)) {
        fk_ctx_copy(ctx, sum, *a->input_);
        summand = sum.data;
    }
    FK_TRY(fk_ctx_status(ctx));
    FK_TRY(fkp_nccl_all_reduce(group, stream, sum.dtype, summand, sum.data, fk_tensor_numel(&sum)));
    if (sum.data != a->output->data) fk_ctx_copy(ctx, *a->output, sum);
    return fk_ctx_status(ctx);
}

static bool supports(const fk_allreduce_args *a)
{
    return fk_tensor_has_rows(a->input_) && fk_tensor_has_rows(a->output);
}

FK_CUDA_OP_IF(allreduce, supports)
