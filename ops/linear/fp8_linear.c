/* SPDX-License-Identifier: Apache-2.0 */
/* The linear layer in fp8 with block scales, the specification: the input quantised in float32, sums in double. */
#include <fk/ops.h>

#include "ops/linear/fp8_reference.h"

static fk_status reference(fk_ctx *ctx, const fk_fp8_linear_args *a)
{
    int64_t depth = a->input->shape[1], features = a->weight->shape[0];
    double *row = fk_ctx_scratch(ctx, sizeof *row * (size_t)(depth + 1));
    if (!row) return fk_ctx_status(ctx);
    for (int64_t t = 0; t < a->input->shape[0]; t++) {
        fp8_reference_quantized(a->input, t, row);
        for (int64_t o = 0; o < features; o++) {
            double sum = 0;
            for (int64_t i = 0; i < depth; i++)
                sum += row[i] * fk_load_element(fkp_at2(a->weight, o, i), FK_F8_E4M3) *
                       fk_load_element(fkp_at2(a->weight_scale, o / FP8_BLOCK, i / FP8_BLOCK), FK_F32);
            fk_store_element(fkp_at2(a->out, t, o), a->out->dtype, sum);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_fp8_linear_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->input) + (double)fk_tensor_nbytes(a->weight) +
                                   (double)fk_tensor_nbytes(a->weight_scale),
                     .write_bytes = (double)fk_tensor_nbytes(a->out),
                     .flops = 2 * (double)a->input->shape[0] * (double)a->input->shape[1] * (double)a->weight->shape[0]};
}

static void fill(fk_random *random, const fk_fp8_linear_args *a)
{
    fp8_fill(random, a->weight);
    fp8_fill_scales(random, a->weight_scale, a->input->shape[1]);
}

static const char *const cases[] = {"T=0 D=128 O=16",  "T=1 D=1 O=1",     "T=3 D=0 O=5",     "T=1 D=128 O=128",  "T=5 D=256 O=130",
                                    "T=17 D=100 O=33", "T=65 D=384 O=64", "T=7 D=129 O=257", "T=33 D=1040 O=72", NULL};

#define FK_OP_DEF "linear/fp8_linear.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
