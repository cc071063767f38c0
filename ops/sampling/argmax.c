/* SPDX-License-Identifier: Apache-2.0 */
/* Argmax, the specification: of equal values the lowest index; NaN is larger than everything, of several the first. */
#include <math.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_argmax_args *a)
{
    (void)ctx;
    for (int64_t b = 0; b < a->self->shape[0]; b++) {
        int64_t best = 0;
        double largest = fk_load_element(fkp_at2(a->self, b, 0), a->self->dtype);
        for (int64_t i = 1; i < a->self->shape[1] && !isnan(largest); i++) {
            double x = fk_load_element(fkp_at2(a->self, b, i), a->self->dtype);
            if (x > largest || isnan(x)) {
                best = i;
                largest = x;
            }
        }
        fkp_set_int(a->output, fkp_at1(a->output, b), best);
    }
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_argmax_args *a)
{
    if (a->self->shape[0] == 0 || a->self->shape[1] > 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "self has no columns to choose from");
}

static const char *const cases[] = {"B=0 V=5", "B=3 V=1", "B=4 V=63", "B=2 V=64", "B=5 V=65", "B=3 V=49152", "B=2 V=128256", NULL};

#define FK_OP_DEF "sampling/argmax.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_CASES cases
#include "fk/define_op.h"
