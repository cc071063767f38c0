/* SPDX-License-Identifier: Apache-2.0 */
/* Expands the field table and the signature text of operators: of FK_OP_DEF when it names one (fk/define_op.h), else of
 * every operator (fk/candidate.h). The two must be the same text on both sides, so they are expanded here only. */

/* Mask and field; the parentheses keep them one macro argument. C++ compilers warn of members that are left out. */
#define FKP_DTYPES(mask_, as_) {.mask = mask_, .as = as_}
#define FK_FLOATS (1u << FK_F32 | 1u << FK_F16 | 1u << FK_BF16, NULL)
#define FK_INTS (1u << FK_I32 | 1u << FK_I64, NULL)
#define FK_ANY (~1u, NULL)
#define FK_IS(dtype) (1u << FK_##dtype, NULL)
#define FK_AS(field) (0, #field)

#define FKH_BEGIN(name, level, formula) static const fk_field fk_##name##_fields[] __attribute__((unused)) = {
#define FKH_END(name) };
#define FKH_TENSOR_FIELD(field_kind, is_optional, field, field_shape, field_dtypes, text, checkpoint, field_doc)     \
    {.name = #field, .shape = field_shape, .dtypes_text = text, .checkpoint_name = checkpoint, .default_text = NULL, \
     .doc = field_doc, .dtypes = FKP_DTYPES field_dtypes, .kind = field_kind, .attr_type = (fk_attr_type)0, .optional = is_optional},
#define FKH_SCALAR_FIELD(field_kind, type, field, text, field_doc)                                                   \
    {.name = #field, .shape = NULL, .dtypes_text = NULL, .checkpoint_name = NULL, .default_text = text,              \
     .doc = field_doc, .dtypes = FKP_DTYPES(0, NULL), .kind = field_kind, .attr_type = type, .optional = false},
#include "fk/op_grammar.h"

/* "rms_norm L1; FK_FIELD_OUT result [..., D] FK_AS(input); ... ; FK_FIELD_ATTR FK_ATTR_float epsilon" */
#define FKH_BEGIN(name, level, formula) static const char fk_##name##_signature[] __attribute__((unused)) = #name " " #level
#define FKH_END(name) ;
#define FKH_TENSOR_FIELD(field_kind, is_optional, field, field_shape, field_dtypes, text, checkpoint, field_doc)     \
    "; " #field_kind " " #is_optional " " #field " " field_shape " " text
#define FKH_SCALAR_FIELD(field_kind, type, field, text, field_doc) "; " #field_kind " " #type " " #field
#include "fk/op_grammar.h"

#undef FKP_DTYPES
#undef FK_FLOATS
#undef FK_INTS
#undef FK_ANY
#undef FK_IS
#undef FK_AS
