/* SPDX-License-Identifier: Apache-2.0 */
/* GELU on CUDA. The exact form calls the complementary error function, which keeps its relative precision in the tail. */
#include <string.h>

#include "core/cuda_map.h"

namespace
{

struct gelu {
    template <typename T> static __device__ __forceinline__ float of(float x)
    {
        return x * 0.5f * erfcf(x * -0.707106781f);
    }
};

/* x / (1 + e^-2u), which is x (1 + tanh u) / 2. The fast exponential is good to 2 units plus 2.4 |u| of float32: below
 * the rounding of 16-bit types. */
struct gelu_tanh {
    template <typename T> static __device__ __forceinline__ float of(float x)
    {
        float u2 = -1.59576912f * (x + 0.044715f * (x * x) * x); /* -2 sqrt(2 / pi) */
        if constexpr (sizeof(T) == 4)
            return x / (1.0f + expf(u2));
        else
            return __fdividef(x, 1.0f + __expf(u2));
    }
};

} // namespace

extern "C" fk_status fk_gelu_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_gelu_args *a)
{
    if (strcmp(a->approximate, "tanh") == 0) return fkp_cuda_map<gelu_tanh>(ctx, stream, a->output, a->self, "gelu");
    return fkp_cuda_map<gelu>(ctx, stream, a->output, a->self, "gelu");
}

static bool supports(const fk_gelu_args *a)
{
    return fkp_cuda_map_supports(a->output, a->self);
}

FK_CUDA_OP_IF(gelu, supports)
