/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of a value, the specification. -0 equals 0; NaN equals nothing. */
#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_select_equal_args *a)
{
    (void)ctx;
    int64_t n = a->input->shape[0], found = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = strcmp(a->order, "descending") == 0 ? n - 1 - i : i;
        bool equal = fk_load_element(fkp_at1(a->input, at), a->input->dtype) == (double)a->value;
        if (equal == a->negate || (a->mask && !*(const uint8_t *)fkp_at1(a->mask, at))) continue;
        for (int64_t k = 0; k < a->copies; k++) fkp_set_int(a->indices, fkp_at1(a->indices, found++), at);
    }
    fkp_set_int(a->count, fkp_at1(a->count, 0), found);
    for (int64_t i = found; i < a->copies * n; i++) fkp_set_int(a->indices, fkp_at1(a->indices, i), 0);
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_select_equal_args *a)
{
    if (a->order && (strcmp(a->order, "ascending") == 0 || strcmp(a->order, "descending") == 0)) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "order is %s, neither ascending nor descending", a->order ? a->order : "NULL");
}

static const char *const cases[] = {"N=7 value=0 input=i32", "N=5 value=0 order=descending copies=3 mask=absent", NULL};

#define FK_OP_DEF "select_equal.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_CASES cases
#include "fk/define_op.h"
