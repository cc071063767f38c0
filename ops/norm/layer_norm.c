/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm, the specification (arXiv:1607.06450). The variance is that of the row itself (divided by D), taken around the
 * mean in a second pass; eps is added inside the root. Sums run in double; one rounding, at the end. Empty rows stay empty;
 * output and input may not overlap partly. */
#include <math.h>

#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_layer_norm_args *a)
{
    (void)ctx;
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < d; i++) mean += fkp_element(a->input, r * d + i);
        mean /= (double)d;
        for (int64_t i = 0; i < d; i++) {
            double x = fkp_element(a->input, r * d + i) - mean;
            variance += x * x;
        }
        double scale = 1 / sqrt(variance / (double)d + (double)a->eps);
        for (int64_t i = 0; i < d; i++) {
            double x = (fkp_element(a->input, r * d + i) - mean) * scale;
            if (a->weight) x *= fkp_element(a->weight, i);
            if (a->bias) x += fkp_element(a->bias, i);
            fkp_set_element(a->output, r * d + i, x);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_layer_norm_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->input) + (a->weight ? (double)fk_tensor_nbytes(a->weight) : 0) +
                                   (a->bias ? (double)fk_tensor_nbytes(a->bias) : 0),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = 7 * (double)fk_tensor_numel(a->input)};
}

static const char *const cases[] = {"T=0 D=64 eps=1e-6",
                                    "T=1 D=8 eps=1e-6",
                                    "T=3 D=63 eps=1e-5",
                                    "T=2x3 D=64 eps=1e-12",
                                    "T=5 D=65 eps=1e-5 bias=absent",
                                    "T=9 D=384 eps=1e-12",
                                    "T=7 D=768 eps=1e-5 weight=absent bias=absent",
                                    "T=2 D=4096 eps=1e-5 weight=absent",
                                    "T=3 D=8191 eps=1e-6",
                                    NULL};

#define FK_OP_DEF "norm/layer_norm.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
