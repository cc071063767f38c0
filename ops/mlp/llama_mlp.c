/* SPDX-License-Identifier: Apache-2.0 */
/* The SwiGLU block (arXiv:2002.05202): down(silu(gate x) * up x), gate and up in one product. */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_llama_mlp_args *a)
{
    fk_merged_column_parallel_linear_module gate_up_proj = {.weight = *a->gate_up_proj};
    fk_row_parallel_linear_module down_proj = {.weight = *a->down_proj};
    fk_tensor gate_up = fk_merged_column_parallel_linear(ctx, &gate_up_proj, *a->x).output; /* [..., 2 I] */
    fk_tensor h = fk_silu_and_mul(ctx, gate_up).result;                                     /* [..., I] */
    fk_row_parallel_linear_out(ctx, &down_proj, *a->output, h);
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_llama_mlp_args *a)
{
    int64_t rows, d;
    fk_rows_cols(a->x, &rows, &d);
    double i = (double)a->down_proj->shape[1];
    return (fk_cost){.read_bytes = fkp_bytes(a->x) + fkp_bytes(a->gate_up_proj) + fkp_bytes(a->down_proj),
                     .write_bytes = fkp_bytes(a->output),
                     .flops = (double)rows * (6 * (double)d * i + 5 * i)};
}

static const char *const cases[] = {"T=0 D=8 I=16", "T=1 D=64 I=176", "T=3 D=63 I=65", "T=2x3 D=64 I=128", "T=9 D=576 I=1536",
                                    NULL};

#define FK_OP_DEF "mlp/llama_mlp.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
