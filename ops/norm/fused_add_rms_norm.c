/* SPDX-License-Identifier: Apache-2.0 */
/* Residual addition and RMSNorm in place, the specification. The sum rounds to the storage dtype first, as production
 * stores it; the norm is that of the rounded sum, computed as ops/norm/rms_norm.c does. input and residual may not
 * overlap. */
#include <math.h>

#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_fused_add_rms_norm_args *a)
{
    (void)ctx;
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < d; i++) {
            fkp_set_element(a->residual, r * d + i, fkp_element(a->input, r * d + i) + fkp_element(a->residual, r * d + i));
            double x = fkp_element(a->residual, r * d + i); /* as rounded */
            sum += x * x;
        }
        double scale = 1 / sqrt(sum / (double)d + (double)a->epsilon);
        for (int64_t i = 0; i < d; i++) {
            double x = fkp_element(a->residual, r * d + i);
            double w = a->weight ? fkp_element(a->weight, i) : 1;
            fkp_set_element(a->input, r * d + i, x * scale * w);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_fused_add_rms_norm_args *a)
{
    double bytes = 2 * (double)fk_tensor_nbytes(a->input);
    return (fk_cost){.read_bytes = bytes + (a->weight ? (double)fk_tensor_nbytes(a->weight) : 0),
                     .write_bytes = bytes,
                     .flops = 5 * (double)fk_tensor_numel(a->input)};
}

static const char *const cases[] = {
    "T=0 D=64 epsilon=1e-6",                "T=1 D=1 epsilon=1e-6",                "T=3 D=63 epsilon=1e-5",
    "T=2 D=64 epsilon=1e-5 weight=absent",  "T=5 D=65 epsilon=1e-5 weight=f32",    "T=2x3 D=576 epsilon=1e-5",
    "T=2 D=4096 epsilon=1e-5",              "T=3 D=8191 epsilon=1e-6",             NULL};

#define FK_OP_DEF "norm/fused_add_rms_norm.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
