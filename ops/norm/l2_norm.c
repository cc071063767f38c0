/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of length 1, the specification. A row shorter than eps is divided by eps, so that a row of zeros stays zero. The sum
 * runs in double; one rounding, at the end. */
#include <math.h>

#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_l2_norm_args *a)
{
    (void)ctx;
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < d; i++) {
            double x = fkp_element(a->input, r * d + i);
            sum += x * x;
        }
        double length = sqrt(sum);
        if (length < (double)a->eps) length = (double)a->eps;
        for (int64_t i = 0; i < d; i++)
            fkp_set_element(a->output, r * d + i, fkp_element(a->input, r * d + i) / length);
    }
    return FK_OK;
}

static fk_cost cost(const fk_l2_norm_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->input),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = 3 * (double)fk_tensor_numel(a->input)};
}

static const char *const cases[] = {"T=0 D=64 eps=1e-12", "T=1 D=2 eps=1e-12",   "T=3 D=63 eps=1e-12", "T=2x5 D=128 eps=1e-12",
                                    "T=9 D=384 eps=0.01", "T=4 D=1025 eps=1e-6", "T=2 D=4096 eps=1e-12", NULL};

#define FK_OP_DEF "norm/l2_norm.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
