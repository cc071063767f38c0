/* SPDX-License-Identifier: Apache-2.0 */
/* The token table: on one rank the embedding operator; more ranks would each hold a range of rows. */
#include "core/composition.h"
#include "core/element.h"
#include "core/random.h"

static fk_status reference(fk_ctx *ctx, const fk_vocab_parallel_embedding_args *a)
{
    fk_embedding_out(ctx, *a->output, *a->weight, *a->input_);
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_vocab_parallel_embedding_args *a)
{
    double out = fkp_bytes(a->output), table = fkp_bytes(a->weight);
    return (fk_cost){.read_bytes = (out < table ? out : table) + fkp_bytes(a->input_), .write_bytes = out};
}

static void fill(fk_random *random, const fk_vocab_parallel_embedding_args *a)
{
    int64_t n = fk_tensor_numel(a->input_), v = a->weight->shape[0];
    for (int64_t t = 0; t < n; t++)
        fkp_set_int(a->input_, fk_tensor_at(a->input_, t), t == 0 ? v - 1 : fkp_random_below(random, v));
}

static const char *const cases[] = {"T=0 V=3 D=8", "T=5 V=7 D=63", "T=2x3 V=50 D=64 input_=i32", "T=7 V=1000 D=576", NULL};

#define FK_OP_DEF "embedding/vocab_parallel_embedding.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
