/* SPDX-License-Identifier: Apache-2.0 */
/* ColBERTv2's mask of tokens, the specification: exact. */
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"

static fk_status reference(fk_ctx *ctx, const fk_colbertv2_token_mask_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < fk_tensor_numel(a->input_ids); i++) {
        int64_t id = fkp_int(a->input_ids, fk_tensor_at(a->input_ids, i));
        bool counts = id != a->pad_token_id;
        for (int64_t s = 0; a->skiplist && s < a->skiplist->shape[0]; s++) counts = counts && id != fkp_int1(a->skiplist, s);
        fk_store_element(fk_tensor_at(a->mask, i), FK_BOOL, counts);
    }
    return FK_OK;
}

/* Few different ids, so that the list and padding are met; padding first. */
static void fill(fk_random *random, const fk_colbertv2_token_mask_args *a)
{
    for (int64_t i = 0; i < fk_tensor_numel(a->input_ids); i++)
        fkp_set_int(a->input_ids, fk_tensor_at(a->input_ids, i), i == 0 ? a->pad_token_id : a->pad_token_id + fkp_random_below(random, 40));
    for (int64_t s = 0; a->skiplist && s < a->skiplist->shape[0]; s++)
        fkp_set_int(a->skiplist, fkp_at1(a->skiplist, s), a->pad_token_id + 2 * s + 1);
}

static const char *const cases[] = {"T=0 pad_token_id=0 S=3", "T=3 pad_token_id=0 skiplist=absent S=1", "T=9x33 pad_token_id=1 S=5",
                                    "T=2x7 pad_token_id=0 S=0 input_ids=i32", "T=4x180 pad_token_id=0 S=32 input_ids=i32", NULL};

#define FK_OP_DEF "encoder/colbertv2_token_mask.def"
#define FK_OP_REFERENCE reference
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
