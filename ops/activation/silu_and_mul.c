/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU's gate, the specification (arXiv:2002.05202): silu(x) = x / (1 + e^-x), one rounding at the end. */
#include <math.h>

#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_silu_and_mul_args *a)
{
    (void)ctx;
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d; i++) {
            double gate = fkp_element(a->input, r * 2 * d + i);
            double value = fkp_element(a->input, r * 2 * d + d + i);
            fkp_set_element(a->result, r * d + i, gate / (1 + exp(-gate)) * value);
        }
    return FK_OK;
}

static fk_cost cost(const fk_silu_and_mul_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->input),
                     .write_bytes = (double)fk_tensor_nbytes(a->result),
                     .flops = 5 * (double)fk_tensor_numel(a->result)};
}

static const char *const cases[] = {"T=0 D=8", "T=1 D=1",   "T=3 D=15",    "T=2 D=16",
                                    "T=5 D=17", "T=7 D=1536", "T=2 D=14336", NULL};

#define FK_OP_DEF "activation/silu_and_mul.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
