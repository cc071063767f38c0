/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped product in fp8, the specification: sums in double, one rounding. */
#include <fk/ops.h>

#include "ops/linear/fp8_reference.h"

static fk_status reference(fk_ctx *ctx, const fk_fp8_grouped_gemm_contiguous_args *a)
{
    for (int64_t t = 0; t < a->a->shape[0]; t++) {
        int64_t expert = fkp_int1(a->m_indices, t);
        if (expert >= a->b->shape[0])
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "m_indices[%lld] is %lld, but there are %lld experts", (long long)t, (long long)expert,
                               (long long)a->b->shape[0]);
        for (int64_t o = 0; o < a->b->shape[1]; o++) {
            double sum = 0;
            for (int64_t i = 0; expert >= 0 && i < a->a->shape[1]; i++)
                sum += fk_load_element(fkp_at2(a->a, t, i), FK_F8_E4M3) * fk_load_element(fkp_at2(a->a_scale, t, i / FP8_BLOCK), FK_F32) *
                       fk_load_element(fkp_at3(a->b, expert, o, i), FK_F8_E4M3) *
                       fk_load_element(fkp_at3(a->b_scale, expert, o / FP8_BLOCK, i / FP8_BLOCK), FK_F32);
            fk_store_element(fkp_at2(a->out, t, o), FK_BF16, sum);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_fp8_grouped_gemm_contiguous_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->a) + (double)fk_tensor_nbytes(a->b) + (double)fk_tensor_nbytes(a->a_scale) +
                                   (double)fk_tensor_nbytes(a->b_scale) + (double)fk_tensor_nbytes(a->m_indices),
                     .write_bytes = (double)fk_tensor_nbytes(a->out),
                     .flops = 2 * (double)a->a->shape[0] * (double)a->a->shape[1] * (double)a->b->shape[1]};
}

/* Runs of rows, one an expert, most of them with a row of padding at the end; some experts have none. */
static void fill(fk_random *random, const fk_fp8_grouped_gemm_contiguous_args *a)
{
    int64_t rows = a->a->shape[0], experts = a->b->shape[0], run = experts > 0 ? rows / experts + 1 : 1;
    fp8_fill(random, a->a);
    fp8_fill(random, a->b);
    fp8_fill_scales(random, a->a_scale, a->a->shape[1]);
    for (int64_t i = 0, n = fk_tensor_numel(a->b_scale); i < n; i++)
        fk_store_element(fk_tensor_at(a->b_scale, i), FK_F32, 0.005 + 0.01 * fkp_random_uniform(random));
    for (int64_t t = 0, end = 0, expert = -1; t < rows; t++) {
        if (t == end) {
            expert = expert + 1 < experts - 1 ? expert + 1 + fkp_random_below(random, 2) : experts - 1;
            end = t + 1 + fkp_random_below(random, 2 * run);
        }
        bool padding = t + 1 == end && t > 0 && fkp_random_below(random, 4) > 0;
        fkp_set_int(a->m_indices, fkp_at1(a->m_indices, t), padding ? -1 : expert);
    }
}

static const char *const cases[] = {"T=0 D=128 O=16 X=2",  "T=1 D=1 O=2 X=1",     "T=3 D=0 O=5 X=2",    "T=8 D=128 O=128 X=1",
                                    "T=20 D=256 O=130 X=4", "T=70 D=100 O=33 X=3", "T=9 D=1040 O=72 X=9", "T=130 D=272 O=40 X=2", NULL};

#define FK_OP_DEF "linear/fp8_grouped_gemm_contiguous.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
