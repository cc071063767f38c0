/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, the specification: the largest score is subtracted first; sums run in double; one rounding, at the end. Scores
 * of minus infinity get 0; where all are, or one is NaN or plus infinity, the results are NaN, as in production. */
#include <math.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "ops/activation/softmax_dim.h"

static fk_status reference(fk_ctx *ctx, const fk_softmax_args *a)
{
    (void)ctx;
    softmax_dim s = softmax_dim_of(a->self, a->dim);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t j = 0; j < s.inner; j++) {
            int64_t first = o * s.n * s.inner + j; /* element i is s.inner further each */
            double largest = -INFINITY, sum = 0;
            for (int64_t i = 0; i < s.n; i++)
                if (fkp_element(a->self, first + i * s.inner) > largest) largest = fkp_element(a->self, first + i * s.inner);
            for (int64_t i = 0; i < s.n; i++) sum += exp(fkp_element(a->self, first + i * s.inner) - largest);
            for (int64_t i = 0; i < s.n; i++)
                fkp_set_element(a->output, first + i * s.inner, exp(fkp_element(a->self, first + i * s.inner) - largest) / sum);
        }
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_softmax_args *a)
{
    int64_t ndim = a->self->ndim > 0 ? a->self->ndim : 1;
    if (a->dim >= -ndim && a->dim < ndim) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "dim %lld is none of a tensor with %d dims", (long long)a->dim, a->self->ndim);
}

static fk_cost cost(const fk_softmax_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->self),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = 5 * (double)fk_tensor_numel(a->self)};
}

static const char *const cases[] = {"T=0x64 dim=-1",  "T=1 dim=0",      "T=3x63 dim=-1",     "T=2x5x65 dim=2",  "T=7x1536 dim=1",
                                    "T=2x8193 dim=1", "T=33x7 dim=0",   "T=3x17x40 dim=-2", "T=5x2x9 dim=1",   "T=2x3x4x65 dim=1",
                                    NULL};

#define FK_OP_DEF "activation/softmax.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
