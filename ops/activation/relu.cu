/* SPDX-License-Identifier: Apache-2.0 */
/* The rectifier on CUDA. */
#include "core/cuda_map.h"

namespace
{

struct relu {
    template <typename T> static __device__ __forceinline__ float of(float x)
    {
        return x <= 0 ? 0.0f : x;
    }
};

} // namespace

extern "C" fk_status fk_relu_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_relu_args *a)
{
    return fkp_cuda_map<relu>(ctx, stream, a->output, a->self, "relu");
}

static bool supports(const fk_relu_args *a)
{
    return fkp_cuda_map_supports(a->output, a->self);
}

FK_CUDA_OP_IF(relu, supports)
