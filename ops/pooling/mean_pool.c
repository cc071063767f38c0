/* SPDX-License-Identifier: Apache-2.0 */
/* Mean over the tokens of each sequence, the specification. Sums in double, tokens in their order; one rounding, at the end.
 * A sequence without tokens gives zeros. */
#include <fk/ops.h>

#include "core/composition.h"
#include "core/element.h"
#include "ops/attention/paged_attention.h"

static fk_status reference(fk_ctx *ctx, const fk_mean_pool_args *a)
{
    int64_t tokens = a->hidden_states->shape[0], d = a->hidden_states->shape[1];
    for (int64_t b = 0; b + 1 < a->cu_seqlens->shape[0]; b++) {
        int64_t start = fkp_int1(a->cu_seqlens, b), stop = fkp_int1(a->cu_seqlens, b + 1);
        if (start < 0 || stop < start || stop > tokens)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens has %lld, %lld for sequence %lld of %lld tokens in all",
                               (long long)start, (long long)stop, (long long)b, (long long)tokens);
        for (int64_t i = 0; i < d; i++) {
            double sum = 0;
            for (int64_t t = start; t < stop; t++) sum += fk_load_element(fkp_at2(a->hidden_states, t, i), a->hidden_states->dtype);
            fk_store_element(fkp_at2(a->output, b, i), a->output->dtype, stop > start ? sum / (double)(stop - start) : 0);
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_mean_pool_args *a)
{
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->cu_seqlens), .write_bytes = fkp_bytes(a->output),
                     .flops = (double)fk_tensor_numel(a->hidden_states)};
}

static void fill(fk_random *random, const fk_mean_pool_args *a)
{
    int64_t sequences = a->cu_seqlens->shape[0] - 1, tokens = a->hidden_states->shape[0];
    paged_fill_cu_seqlens(random, a->cu_seqlens, tokens, sequences > 1 ? 2 * (tokens / sequences) + 1 : tokens);
    if (sequences >= 4) fkp_set_int(a->cu_seqlens, fkp_at1(a->cu_seqlens, 2), fkp_int1(a->cu_seqlens, 1)); /* one is empty */
}

static const char *const cases[] = {"T=0 D=8 B=0", "T=1 D=1 B=1", "T=5 D=63 B=1", "T=9 D=64 B=3", "T=37 D=65 B=5",
                                    "T=130 D=384 B=4", "T=20 D=4096 B=2", NULL};

#define FK_OP_DEF "pooling/mean_pool.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
