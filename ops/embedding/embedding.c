/* SPDX-License-Identifier: Apache-2.0 */
/* Table lookup, the specification: rows are copied bit for bit. */
#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"

static fk_status reference(fk_ctx *ctx, const fk_embedding_args *a)
{
    int64_t n = fk_tensor_numel(a->indices), v = a->weight->shape[0], d = a->weight->shape[1];
    size_t size = (size_t)fk_dtype_bits(a->weight->dtype) / 8;
    for (int64_t t = 0; t < n; t++) {
        int64_t index = fkp_int(a->indices, fk_tensor_at(a->indices, t));
        if (index < 0 || index >= v)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "indices[%lld] is %lld, outside [0, %lld)", (long long)t,
                               (long long)index, (long long)v);
        for (int64_t i = 0; i < d; i++) memcpy(fk_tensor_at(a->output, t * d + i), fkp_at2(a->weight, index, i), size);
    }
    return FK_OK;
}

/* Distinct rows are read once; with more indices than rows every row is counted. */
static fk_cost cost(const fk_embedding_args *a)
{
    double out = (double)fk_tensor_nbytes(a->output), table = (double)fk_tensor_nbytes(a->weight);
    return (fk_cost){.read_bytes = (out < table ? out : table) + (double)fk_tensor_nbytes(a->indices),
                     .write_bytes = out};
}

/* Any row, the first and the last for certain. */
static void fill(fk_random *random, const fk_embedding_args *a)
{
    int64_t n = fk_tensor_numel(a->indices), v = a->weight->shape[0];
    for (int64_t t = 0; t < n; t++) {
        int64_t index = t == 0 ? v - 1 : t == 1 ? 0 : fkp_random_below(random, v);
        fkp_set_int(a->indices, fk_tensor_at(a->indices, t), index);
    }
}

static const char *const cases[] = {"T=0 V=3 D=8",          "T=1 V=1 D=1",      "T=5 V=7 D=63", "T=2x3 V=50 D=64 indices=i32",
                                    "T=9 V=100 D=65",       "T=7 V=1000 D=576", "T=33 V=16 D=4096 indices=i32",
                                    NULL};

#define FK_OP_DEF "embedding/embedding.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
