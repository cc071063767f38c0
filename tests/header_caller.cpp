/* SPDX-License-Identifier: Apache-2.0 */
/* A caller in C++: its view of the structs, a call through the typed face, and a candidate. */
#include "header_layout.h"

extern "C" const size_t *header_layout_in_cpp(size_t *count);
extern "C" float header_call_in_cpp(fk_ctx *ctx, float gate, float value);

const size_t *header_layout_in_cpp(size_t *count)
{
    *count = HEADER_LAYOUT_COUNT;
    return header_layout;
}

/* silu(gate) * value */
float header_call_in_cpp(fk_ctx *ctx, float gate, float value)
{
    float input[2] = {gate, value};
    const int64_t shape[2] = {1, 2};
    fk_tensor y = fk_silu_and_mul(ctx, fk_tensor_wrap(input, FK_F32, fk_ctx_device(ctx), 2, shape)).result;
    return fk_ctx_status(ctx) == FK_OK ? *FK_PTR(float, &y) : -1;
}

FK_CANDIDATE(silu_and_mul)
{
    *FK_PTR(float, a->result) = 42;
    return 0;
}
