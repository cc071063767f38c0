/* SPDX-License-Identifier: Apache-2.0 */
/* The typed face of every operator, expanded from ops/ops.def: for an operator `rms_norm`
 *   fk_rms_norm_args     pointers to its tensors (NULL when absent) and its scalars, in the order of the .def
 *   fk_rms_norm_result   its outputs and mutated tensors, as views
 *   fk_rms_norm_module   (modules only) constructor arguments and weights
 *   fk_rms_norm(ctx, inputs...)                allocates the outputs in the step arena and calls through the door
 *   fk_rms_norm_out(ctx, all fields...)        the same into the caller's outputs, which stand where the .def has them
 * A module's calls take (ctx, &module, ...) in place of its weights and constructor arguments. Optional tensors are
 * FK_ABSENT when not there. A call whose context has failed does nothing and returns poison tensors (fk/ctx.h).
 *
 * Grammar of a .def (one block; fields in the order of the production signature):
 *   FK_OP(name, L1, "formula") ... FK_OP_END(name)            a function
 *   FK_MODULE(name, L2, "formula") ... FK_MODULE_END(name)    a production class: may have FK_INIT and FK_WEIGHT fields
 *   FK_MIRRORS("library", "symbol")     the production signature in mirrors/<library>-*.tsv, compared field by field
 *   FK_OMIT(name, "reason")             an argument of that signature which has no field here
 *   FK_USES(name)                       an operator the composition calls (L2 and up; verified by tracing)
 *   FK_NUMERICS("D", 1)                 terms accumulated into one output element; roundings to the storage dtype
 *   FK_OUT(name, "[T, D]", dtypes, "doc")   also FK_OUT_MAX (the shape is a bound), FK_INOUT, FK_INOUT_OPT, FK_STATE,
 *                                           FK_IN, FK_IN_OPT, FK_CONTEXT, FK_CONTEXT_OPT
 *   FK_WEIGHT(name, "[I, D]", dtypes, "checkpoint.name", "doc")    FK_WEIGHT_OPT
 *   FK_INIT(type, name, default, "doc")     FK_CONFIG(type, name, "doc")          scalars of a module
 *   FK_ATTR(type, name, default, "doc")     FK_CONTEXT_ATTR(type, name, "doc")    scalars of a call
 * FK_CONTEXT, FK_CONTEXT_ATTR, FK_CONFIG and FK_STATE fields are not arguments of the mirrored signature: production code
 * takes them from its forward context, its config object, or keeps them in the module.
 * shape: dims are names bound at first sight, numbers, or expressions over bound names and scalars ("[T, 2*I]",
 *        "[num_heads*head_size]"); "..." stands for any leading dims, "?" for one dim that is not checked.
 * dtypes: FK_FLOATS, FK_INTS, FK_ANY, FK_IS(F32), FK_AS(other_field).
 * type: bool int float string. default: FK_REQUIRED or the literal of the production signature. */
#ifndef FK_OPS_H
#define FK_OPS_H

#include <fk/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Positions in the registry. */
enum {
#define FKH_BEGIN(name, level, formula) fk_##name##_index,
#include "fk/op_grammar.h"
    fk_op_index_count
};

/* Argument structs. */
#define FKH_BEGIN(name, level, formula) typedef struct fk_##name##_args {
#define FKH_END(name) } fk_##name##_args;
#define FKH_OUT(name) fk_tensor *name;
#define FKH_MUTATED(name) fk_tensor *name;
#define FKH_READ(name) const fk_tensor *name;
#define FKH_WEIGHT(name) const fk_tensor *name;
#define FKH_INIT(ctype, name) ctype name;
#define FKH_ATTR(ctype, name) ctype name;
#include "fk/op_grammar.h"

/* Result structs. */
#define FKH_BEGIN(name, level, formula) typedef struct fk_##name##_result {
#define FKH_END(name) } fk_##name##_result;
#define FKH_OUT(name) fk_tensor name;
#define FKH_MUTATED(name) fk_tensor name;
#include "fk/op_grammar.h"

/* Modules. `path` is the layer path in the model ("model.layers.3.mlp"), for errors and traces. */
#define FKH_MODULE_BEGIN(name, level, formula) typedef struct fk_##name##_module { const char *path;
#define FKH_MODULE_END(name) } fk_##name##_module;
#define FKH_INIT(ctype, name) ctype name;
#define FKH_WEIGHT(name) fk_tensor name;
#include "fk/op_grammar.h"

/* Calls that allocate their outputs. */
#define FKH_OP_BEGIN(name, level, formula) fk_##name##_result fk_##name(fk_ctx *ctx
#define FKH_MODULE_BEGIN(name, level, formula)                                                                       \
    fk_##name##_result fk_##name(fk_ctx *ctx, const fk_##name##_module *module
#define FKH_END(name) );
#define FKH_MUTATED(name) , fk_tensor name
#define FKH_READ(name) , fk_tensor name
#define FKH_ATTR(ctype, name) , ctype name
#include "fk/op_grammar.h"

/* Calls into the caller's outputs. */
#define FKH_OP_BEGIN(name, level, formula) void fk_##name##_out(fk_ctx *ctx
#define FKH_MODULE_BEGIN(name, level, formula)                                                                       \
    void fk_##name##_out(fk_ctx *ctx, const fk_##name##_module *module
#define FKH_END(name) );
#define FKH_OUT(name) , fk_tensor name
#define FKH_MUTATED(name) , fk_tensor name
#define FKH_READ(name) , fk_tensor name
#define FKH_ATTR(ctype, name) , ctype name
#include "fk/op_grammar.h"

#ifdef __cplusplus
}
#endif
#endif
