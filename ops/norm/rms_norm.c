/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm, the specification (arXiv:1910.07467). The mean of squares and the scaling are float32 as in production; the
 * sum runs in double, so that the reference does not depend on an order of summation. One rounding, at the end. Empty rows
 * stay empty; result and input may not overlap partly. */
#include <math.h>

#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_rms_norm_args *a)
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
        double scale = 1 / sqrt(sum / (double)d + (double)a->epsilon);
        for (int64_t i = 0; i < d; i++) {
            double x = fkp_element(a->input, r * d + i);
            double w = a->weight ? fkp_element(a->weight, i) : 1;
            fkp_set_element(a->result, r * d + i, x * scale * w);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_rms_norm_args *a)
{
    double n = (double)fk_tensor_numel(a->input);
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->input) + (a->weight ? (double)fk_tensor_nbytes(a->weight) : 0),
                     .write_bytes = (double)fk_tensor_nbytes(a->result),
                     .flops = 4 * n};
}

static const char *const cases[] = {"T=0 D=64 epsilon=1e-6",  "T=1 D=1 epsilon=1e-6",    "T=3 D=63 epsilon=1e-5",
                                    "T=2 D=64 epsilon=1e-5",  "T=5 D=65 epsilon=1e-5",   "T=7 D=576 epsilon=1e-5",
                                    "T=2 D=4096 epsilon=1e-5", "T=3 D=8191 epsilon=1e-6", NULL};

#define FK_OP_DEF "norm/rms_norm.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
