/* SPDX-License-Identifier: Apache-2.0 */
/* The rectifier, the specification. NaN stays NaN and -0 becomes 0; nothing is rounded. */
#include <fk/ops.h>

#include "core/dtype.h"

static fk_status reference(fk_ctx *ctx, const fk_relu_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++) {
        double x = fk_load_element(fk_tensor_at(a->self, i), a->self->dtype);
        fk_store_element(fk_tensor_at(a->output, i), a->output->dtype, x <= 0 ? 0 : x);
    }
    return FK_OK;
}

static const char *const cases[] = {"T=0", "T=1", "T=3x63", "T=2x5x65", "T=7x1536", "T=2x16384", NULL};

#define FK_OP_DEF "activation/relu.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CASES cases
#include "fk/define_op.h"
