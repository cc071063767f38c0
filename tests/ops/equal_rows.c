/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled rows of a table, a composition. */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_equal_rows_args *a)
{
    fk_tensor mask = a->use_mask ? fkp_optional(a->mask) : FK_ABSENT;
    fk_tensor indices = fk_ctx_tensor(ctx, FK_I64, 1, a->rows->shape); /* [copies*N] */
    fk_select_equal_out(ctx, indices, *a->count, *a->labels, a->value, false, a->order, a->copies, mask);
    fk_embedding_out(ctx, *a->rows, *a->table, indices);
    return fk_ctx_status(ctx);
}

static const char *const cases[] = {"N=7 D=3 value=0 labels=u8", "N=5 D=2 value=0 order=descending use_mask=False copies=2", NULL};

#define FK_OP_DEF "equal_rows.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CASES cases
#include "fk/define_op.h"
