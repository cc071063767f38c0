/* SPDX-License-Identifier: Apache-2.0 */
/* The rectifier, the specification. NaN stays NaN and -0 becomes 0; nothing is rounded. */
#include <fk/ops.h>

#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_relu_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++) {
        double x = fkp_element(a->self, i);
        fkp_set_element(a->output, i, x <= 0 ? 0 : x);
    }
    return FK_OK;
}

static const char *const cases[] = {"T=0", "T=1", "T=3x63", "T=2x5x65", "T=7x1536", "T=2x16384", NULL};

#define FK_OP_DEF "activation/relu.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CASES cases
#include "fk/define_op.h"
