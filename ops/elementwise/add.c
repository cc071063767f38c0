/* SPDX-License-Identifier: Apache-2.0 */
/* Addition, the specification: one rounding. */
#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_add_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++)
        fkp_set_element(a->output, i, fkp_element(a->self, i) + fkp_element(a->other, i));
    return FK_OK;
}

static fk_cost cost(const fk_add_args *a)
{
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->self) + (double)fk_tensor_nbytes(a->other),
                     .write_bytes = (double)fk_tensor_nbytes(a->output),
                     .flops = (double)fk_tensor_numel(a->self)};
}

static const char *const cases[] = {"T=0", "T=1", "T=3x63", "T=2x5x65", "T=7x1536", "T=2x16384", NULL};

#define FK_OP_DEF "elementwise/add.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
