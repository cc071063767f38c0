/* SPDX-License-Identifier: Apache-2.0 */
/* GELU, the specification (arXiv:1606.08415). Phi is half the complementary error function of -x / sqrt(2), which keeps
 * its relative precision where it is small; the tanh form is x / (1 + e^-2u), which equals x (1 + tanh u) / 2. One
 * rounding, at the end. NaN stays NaN, and minus infinity times probability 0 is NaN, as in production. */
#include <math.h>
#include <string.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"

static double gelu(double x)
{
    return x * 0.5 * erfc(-x * 0.70710678118654752);
}

static double gelu_tanh(double x)
{
    double u = 0.79788456080286536 * (x + 0.044715 * x * x * x); /* sqrt(2 / pi) */
    return x / (1 + exp(-2 * u));
}

static fk_status reference(fk_ctx *ctx, const fk_gelu_args *a)
{
    (void)ctx;
    bool by_tanh = strcmp(a->approximate, "tanh") == 0;
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++) {
        double x = fkp_element(a->self, i);
        fkp_set_element(a->output, i, by_tanh ? gelu_tanh(x) : gelu(x));
    }
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_gelu_args *a)
{
    if (strcmp(a->approximate, "none") == 0 || strcmp(a->approximate, "tanh") == 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "approximate is '%s', neither none nor tanh", a->approximate);
}

static fk_cost cost(const fk_gelu_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->self),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = 8 * (double)fk_tensor_numel(a->self)};
}

static const char *const cases[] = {"T=0 approximate=none",      "T=1 approximate=none",      "T=3x63 approximate=none",
                                    "T=2x5x65 approximate=tanh", "T=7x1536 approximate=none", "T=7x1537 approximate=tanh",
                                    "T=2x16384 approximate=none", NULL};

#define FK_OP_DEF "activation/gelu.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
