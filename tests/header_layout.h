/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and offsets in public structs, as the language that includes this sees them. */
#include <stddef.h>

#include <fk/candidate.h>
#include <fk/ctx.h>
#include <fk/door.h>
#include <fk/model.h>

static const size_t header_layout[] = {
    sizeof(bool), sizeof(fk_dtype), sizeof(fk_status), sizeof(fk_device), sizeof(fk_tensor), offsetof(fk_tensor, shape),
    offsetof(fk_tensor, strides), sizeof(fk_field), offsetof(fk_field, dtypes), offsetof(fk_field, optional), sizeof(fk_op),
    offsetof(fk_op, is_module), offsetof(fk_op, cases), sizeof(fk_impl), offsetof(fk_impl, fused), offsetof(fk_impl, user),
    sizeof(fk_cost), sizeof(fk_hook), sizeof(fk_ctx_options), offsetof(fk_ctx_options, references_only), sizeof(fk_mark),
    sizeof(fk_backend), sizeof(fk_candidate_note), sizeof(DLTensor), sizeof(TVMFFIAny),
#define FKH_BEGIN(name, level, formula) sizeof(fk_##name##_args), sizeof(fk_##name##_result),
#include "fk/op_grammar.h"
#define FKH_MODULE_BEGIN(name, level, formula) sizeof(fk_##name##_module),
#include "fk/op_grammar.h"
};
enum { HEADER_LAYOUT_COUNT = sizeof header_layout / sizeof header_layout[0] };
