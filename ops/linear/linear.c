/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layer, the specification. The dot product and the bias are summed in double and rounded once; production sums in
 * float32 in an order of its own. No input features: the bias alone. The output may not overlap any input. */
#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_linear_args *a)
{
    (void)ctx;
    int64_t rows, n_out, n_in = a->weight->shape[1];
    fk_rows_cols(a->output, &rows, &n_out);
    if (fk_tensor_numel(a->output) == 0) return FK_OK;
    for (int64_t r = 0; r < rows; r++) {
        const void *x = n_in ? fk_tensor_at(a->input, r * n_in) : NULL;
        for (int64_t o = 0; o < n_out; o++) {
            const void *w = n_in ? fkp_at2(a->weight, o, 0) : NULL;
            double sum = a->bias ? fk_load_element(fkp_at1(a->bias, o), a->bias->dtype) : 0;
            sum += fkp_dot(a->input, x, a->weight, w, n_in);
            fkp_set_element(a->output, r * n_out + o, sum);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_linear_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->input) + (double)fk_tensor_nbytes(a->weight) +
                                   (a->bias ? (double)fk_tensor_nbytes(a->bias) : 0),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = 2 * (double)fk_tensor_numel(a->output) * (double)a->weight->shape[1]};
}

/* A single output feature has no bias here: where product and bias cancel, nothing in the row says how large they were. */
static const char *const cases[] = {
    "T=0 I=8 O=8 bias=absent",       "T=1 I=1 O=1 bias=absent",        "T=1 I=64 O=33 bias=absent",
    "T=3 I=63 O=17",                 "T=2x3 I=65 O=31",                "T=1 I=576 O=960 bias=absent",
    "T=17 I=576 O=192 bias=absent",  "T=33 I=129 O=65",                "T=1 I=1536 O=576 bias=absent",
    "T=7 I=4096 O=48 bias=absent",   "T=64 I=128 O=128 bias=absent",   "T=5 I=0 O=3",
    NULL};

#define FK_OP_DEF "linear/linear.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
