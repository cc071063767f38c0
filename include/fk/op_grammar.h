/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of .def files, once: each word calls a hook (FKH_...) with its parts. A pass defines the hooks it wants
 * and includes this file, which reads the declarations (FK_OP_DEF when one operator is meant, else all of ops.def) and
 * forgets the hooks again. Included many times on purpose; only fk/ops.h, fk/op_tables.h, fk/define_op.h and
 * core/registry.c make passes. */

/* Operator frame. FKH_BEGIN/FKH_END serve passes that treat functions and modules alike. */
#ifndef FKH_BEGIN
#define FKH_BEGIN(name, level, formula)
#endif
#ifndef FKH_END
#define FKH_END(name)
#endif
#ifndef FKH_OP_BEGIN
#define FKH_OP_BEGIN(name, level, formula) FKH_BEGIN(name, level, formula)
#endif
#ifndef FKH_OP_END
#define FKH_OP_END(name) FKH_END(name)
#endif
#ifndef FKH_MODULE_BEGIN
#define FKH_MODULE_BEGIN(name, level, formula) FKH_BEGIN(name, level, formula)
#endif
#ifndef FKH_MODULE_END
#define FKH_MODULE_END(name) FKH_END(name)
#endif
#ifndef FKH_MIRRORS
#define FKH_MIRRORS(library, symbol)
#endif
#ifndef FKH_OMIT
#define FKH_OMIT(name, reason)
#endif
#ifndef FKH_USES
#define FKH_USES(name)
#endif
#ifndef FKH_NUMERICS
#define FKH_NUMERICS(accumulates, roundings)
#endif
/* Tensors, by what happens to them. */
#ifndef FKH_OUT
#define FKH_OUT(name)
#endif
#ifndef FKH_MUTATED
#define FKH_MUTATED(name)
#endif
#ifndef FKH_READ
#define FKH_READ(name)
#endif
#ifndef FKH_WEIGHT
#define FKH_WEIGHT(name)
#endif
/* Scalars: their C type and name. */
#ifndef FKH_INIT
#define FKH_INIT(ctype, name)
#endif
#ifndef FKH_ATTR
#define FKH_ATTR(ctype, name)
#endif
/* Every field with all its parts, for tables. */
#ifndef FKH_TENSOR_FIELD
#define FKH_TENSOR_FIELD(kind, is_optional, name, shape, dtypes, dtypes_text, checkpoint, doc)
#endif
#ifndef FKH_SCALAR_FIELD
#define FKH_SCALAR_FIELD(kind, attr_type, name, default_text, doc)
#endif

#define FK_OP(name, level, formula) FKH_OP_BEGIN(name, level, formula)
#define FK_OP_END(name) FKH_OP_END(name)
#define FK_MODULE(name, level, formula) FKH_MODULE_BEGIN(name, level, formula)
#define FK_MODULE_END(name) FKH_MODULE_END(name)
#define FK_MIRRORS(library, symbol) FKH_MIRRORS(library, symbol)
#define FK_OMIT(name, reason) FKH_OMIT(name, reason)
#define FK_USES(name) FKH_USES(name)
#define FK_NUMERICS(accumulates, roundings) FKH_NUMERICS(accumulates, roundings)

#define FK_OUT(name, shape, dtypes, doc)                                                                             \
    FKH_OUT(name) FKH_TENSOR_FIELD(FK_FIELD_OUT, 0, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_OUT_MAX(name, shape, dtypes, doc)                                                                         \
    FKH_OUT(name) FKH_TENSOR_FIELD(FK_FIELD_OUT_MAX, 0, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_INOUT(name, shape, dtypes, doc)                                                                           \
    FKH_MUTATED(name) FKH_TENSOR_FIELD(FK_FIELD_INOUT, 0, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_INOUT_OPT(name, shape, dtypes, doc)                                                                       \
    FKH_MUTATED(name) FKH_TENSOR_FIELD(FK_FIELD_INOUT, 1, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_STATE(name, shape, dtypes, doc)                                                                           \
    FKH_MUTATED(name) FKH_TENSOR_FIELD(FK_FIELD_STATE, 0, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_IN(name, shape, dtypes, doc)                                                                              \
    FKH_READ(name) FKH_TENSOR_FIELD(FK_FIELD_IN, 0, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_IN_OPT(name, shape, dtypes, doc)                                                                          \
    FKH_READ(name) FKH_TENSOR_FIELD(FK_FIELD_IN, 1, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_CONTEXT(name, shape, dtypes, doc)                                                                         \
    FKH_READ(name) FKH_TENSOR_FIELD(FK_FIELD_CONTEXT, 0, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_CONTEXT_OPT(name, shape, dtypes, doc)                                                                     \
    FKH_READ(name) FKH_TENSOR_FIELD(FK_FIELD_CONTEXT, 1, name, shape, dtypes, #dtypes, NULL, doc)
#define FK_WEIGHT(name, shape, dtypes, checkpoint, doc)                                                              \
    FKH_WEIGHT(name) FKH_TENSOR_FIELD(FK_FIELD_WEIGHT, 0, name, shape, dtypes, #dtypes, checkpoint, doc)
#define FK_WEIGHT_OPT(name, shape, dtypes, checkpoint, doc)                                                          \
    FKH_WEIGHT(name) FKH_TENSOR_FIELD(FK_FIELD_WEIGHT, 1, name, shape, dtypes, #dtypes, checkpoint, doc)
/* The type is pasted here, before `bool` can expand to _Bool. */
#define FK_INIT(type, name, default_value, doc)                                                                      \
    FKH_INIT(fk_attr_ctype_##type, name)                                                                             \
    FKH_SCALAR_FIELD(FK_FIELD_INIT, FK_ATTR_##type, name, #default_value, doc)
#define FK_ATTR(type, name, default_value, doc)                                                                      \
    FKH_ATTR(fk_attr_ctype_##type, name)                                                                             \
    FKH_SCALAR_FIELD(FK_FIELD_ATTR, FK_ATTR_##type, name, #default_value, doc)
#define FK_CONFIG(type, name, doc)                                                                                   \
    FKH_INIT(fk_attr_ctype_##type, name)                                                                             \
    FKH_SCALAR_FIELD(FK_FIELD_CONFIG, FK_ATTR_##type, name, "FK_REQUIRED", doc)
#define FK_CONTEXT_ATTR(type, name, doc)                                                                             \
    FKH_ATTR(fk_attr_ctype_##type, name)                                                                             \
    FKH_SCALAR_FIELD(FK_FIELD_CONTEXT_ATTR, FK_ATTR_##type, name, "FK_REQUIRED", doc)

#ifdef FK_OP_DEF
#include FK_OP_DEF
#else
#include "ops.def"
#endif

#undef FK_OP
#undef FK_OP_END
#undef FK_MODULE
#undef FK_MODULE_END
#undef FK_MIRRORS
#undef FK_OMIT
#undef FK_USES
#undef FK_NUMERICS
#undef FK_OUT
#undef FK_OUT_MAX
#undef FK_INOUT
#undef FK_INOUT_OPT
#undef FK_STATE
#undef FK_IN
#undef FK_IN_OPT
#undef FK_CONTEXT
#undef FK_CONTEXT_OPT
#undef FK_WEIGHT
#undef FK_WEIGHT_OPT
#undef FK_INIT
#undef FK_ATTR
#undef FK_CONFIG
#undef FK_CONTEXT_ATTR

#undef FKH_BEGIN
#undef FKH_END
#undef FKH_OP_BEGIN
#undef FKH_OP_END
#undef FKH_MODULE_BEGIN
#undef FKH_MODULE_END
#undef FKH_MIRRORS
#undef FKH_OMIT
#undef FKH_USES
#undef FKH_NUMERICS
#undef FKH_OUT
#undef FKH_MUTATED
#undef FKH_READ
#undef FKH_WEIGHT
#undef FKH_INIT
#undef FKH_ATTR
#undef FKH_TENSOR_FIELD
#undef FKH_SCALAR_FIELD
