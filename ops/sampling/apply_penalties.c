/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties, the specification. */
#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"

static int64_t count_of(const fk_tensor *tokens, int64_t b, int64_t token)
{
    int64_t count = 0;
    for (int64_t i = 0; i < tokens->shape[1]; i++) count += fkp_int(tokens, fkp_at2(tokens, b, i)) == token;
    return count;
}

static fk_status reference(fk_ctx *ctx, const fk_apply_penalties_args *a)
{
    (void)ctx;
    for (int64_t b = 0; b < a->logits->shape[0]; b++) {
        double presence = fkp_element(a->presence_penalties, b), frequency = fkp_element(a->frequency_penalties, b);
        double repetition = fkp_element(a->repetition_penalties, b);
        for (int64_t v = 0; v < a->logits->shape[1]; v++) {
            void *at = fkp_at2(a->logits, b, v);
            int64_t count = count_of(a->output_tokens_tensor, b, v);
            if (count == 0 && count_of(a->prompt_tokens_tensor, b, v) == 0) continue;
            double x = fk_load_element(at, a->logits->dtype);
            x = x > 0 ? x / repetition : x * repetition;
            fk_store_element(at, a->logits->dtype, x - frequency * (double)count - (count ? presence : 0));
        }
    }
    return FK_OK;
}

static fk_cost cost(const fk_apply_penalties_args *a)
{
    double tokens = (double)(fk_tensor_numel(a->prompt_tokens_tensor) + fk_tensor_numel(a->output_tokens_tensor));
    double size = fk_dtype_bits(a->logits->dtype) / 8.0;
    return (fk_cost){.read_bytes = tokens * (8 + size) + 12.0 * (double)a->logits->shape[0], .write_bytes = tokens * size, .flops = 3 * tokens};
}

/* Few different tokens, so that they come again; padding at the end of rows. */
static void fill_tokens(fk_random *random, const fk_tensor *tokens, int64_t vocabulary)
{
    for (int64_t b = 0; b < tokens->shape[0]; b++) {
        int64_t length = fkp_random_below(random, tokens->shape[1] + 1);
        for (int64_t i = 0; i < tokens->shape[1]; i++) {
            int64_t token = fkp_random_below(random, 2) ? fkp_random_below(random, vocabulary) : fkp_random_below(random, vocabulary < 5 ? vocabulary : 5);
            fkp_set_int(tokens, fkp_at2(tokens, b, i), i < length ? token : i % 2 ? vocabulary : -1);
        }
    }
}

static void fill(fk_random *random, const fk_apply_penalties_args *a)
{
    if (a->logits->shape[1] == 0) return;
    fill_tokens(random, a->prompt_tokens_tensor, a->logits->shape[1]);
    fill_tokens(random, a->output_tokens_tensor, a->logits->shape[1]);
    for (int64_t b = 0; b < a->logits->shape[0]; b++) {
        if (a->output_tokens_tensor->shape[1] > 0) fkp_set_int(a->output_tokens_tensor, fkp_at2(a->output_tokens_tensor, b, 0), 0);
        fkp_set_element(a->presence_penalties, b, b % 3 == 1 ? 0 : 2 * fkp_random_uniform(random) - 0.5);
        fkp_set_element(a->frequency_penalties, b, b % 3 == 2 ? 0 : 2 * fkp_random_uniform(random) - 0.5);
        fkp_set_element(a->repetition_penalties, b, b % 4 == 3 ? 1 : 0.6 + fkp_random_uniform(random));
    }
}

static const char *const cases[] = {"B=0 V=10 P=3 O=2", "B=1 V=2 P=1 O=1", "B=5 V=40 P=30 O=60", "B=3 V=63 P=0 O=9", "B=4 V=1000 P=700 O=1300",
                                    "B=2 V=49152 P=50 O=20", NULL};

#define FK_OP_DEF "sampling/apply_penalties.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
