/* SPDX-License-Identifier: Apache-2.0 */
/* Defines one operator: its table entry and its two calls. Included at the end of ops/<family>/<op>.c, after
 *   #define FK_OP_DEF "norm/rms_norm.def"
 *   #define FK_OP_REFERENCE reference      fk_status reference(fk_ctx *, const fk_rms_norm_args *)
 * and, where they say more than the defaults of fk/op.h,
 *   #define FK_OP_COST cost                fk_cost cost(const fk_rms_norm_args *)
 *   #define FK_OP_CHECK check              fk_status check(fk_ctx *, const fk_rms_norm_args *)
 *   #define FK_OP_FILL fill                void fill(fk_random *, const fk_rms_norm_args *)
 *   #define FK_OP_CASES cases              const char *const cases[], NULL-terminated */
#include <fk/door.h>
#include <fk/ops.h>

#include "fk/op_tables.h"

static const char *const fkp_uses[] = {
#define FKH_USES(name) #name,
#include "fk/op_grammar.h"
    NULL};

static const fk_omission fkp_omissions[] = {
#define FKH_OMIT(name, reason) {#name, reason},
#include "fk/op_grammar.h"
    {NULL, NULL}};

static fk_status fkp_reference(fk_ctx *ctx, const void *args, void *user)
{
    (void)user;
    return FK_OP_REFERENCE(ctx, args);
}

#ifdef FK_OP_COST
static fk_cost fkp_cost(const void *args)
{
    return FK_OP_COST(args);
}
#endif
#ifdef FK_OP_CHECK
static fk_status fkp_check(fk_ctx *ctx, const void *args)
{
    return FK_OP_CHECK(ctx, args);
}
#endif
#ifdef FK_OP_FILL
static void fkp_fill(fk_random *random, const void *args)
{
    FK_OP_FILL(random, args);
}
#endif

/* One initialiser; the grammar's words fill in what the .def says. */
#define FKP_LEVEL_L1 1
#define FKP_LEVEL_L2 2
#define FKP_LEVEL_L3 3
#define FKP_COMMON(op_name, op_level, op_formula)                                                                    \
    extern const fk_op fk_##op_name##_op;                                                                            \
    const fk_op fk_##op_name##_op = {                                                                                \
        .index = fk_##op_name##_index, .name = #op_name, .level = FKP_LEVEL_##op_level, .formula = op_formula, .family = FK_OP_DEF,                 \
        .fields = fk_##op_name##_fields,                                                                             \
        .num_fields = (int)(sizeof fk_##op_name##_fields / sizeof fk_##op_name##_fields[0]),                         \
        .args_size = sizeof(fk_##op_name##_args), .signature = fk_##op_name##_signature,
#define FKH_OP_BEGIN(name, level, formula) FKP_COMMON(name, level, formula)
#define FKH_MODULE_BEGIN(name, level, formula) FKP_COMMON(name, level, formula).is_module = true,
#define FKH_MIRRORS(library, symbol) .mirrors_library = library, .mirrors_symbol = symbol,
#define FKH_NUMERICS(terms, count) .accumulates = terms, .roundings = count,
#define FKH_END(name)
#include "fk/op_grammar.h"
    .uses = fkp_uses, .omissions = fkp_omissions, .reference = fkp_reference,
#ifdef FK_OP_COST
    .cost = fkp_cost,
#endif
#ifdef FK_OP_CHECK
    .check = fkp_check,
#endif
#ifdef FK_OP_FILL
    .fill = fkp_fill,
#endif
#ifdef FK_OP_CASES
    .cases = FK_OP_CASES,
#endif
};

/* The call that allocates its outputs: head, then body. */
#define FKH_OP_BEGIN(name, level, formula) fk_##name##_result fk_##name(fk_ctx *ctx
#define FKH_MODULE_BEGIN(name, level, formula)                                                                       \
    fk_##name##_result fk_##name(fk_ctx *ctx, const fk_##name##_module *module
#define FKH_END(name) )
#define FKH_MUTATED(name) , fk_tensor name
#define FKH_READ(name) , fk_tensor name
#define FKH_ATTR(ctype, name) , ctype name
#include "fk/op_grammar.h"
{
#define FKP_BODY(name)                                                                                               \
    fk_##name##_args args = {0};                                                                                     \
    fk_##name##_result result = {0};
#define FKH_OP_BEGIN(name, level, formula) FKP_BODY(name) const char *path = NULL;
#define FKH_MODULE_BEGIN(name, level, formula) FKP_BODY(name) const char *path = module->path;
#define FKH_OUT(name) args.name = &result.name;
#define FKH_MUTATED(name)                                                                                            \
    result.name = name;                                                                                              \
    args.name = fk_tensor_present(&name) ? &result.name : NULL;
#define FKH_READ(name) args.name = fk_tensor_present(&name) ? &name : NULL;
#define FKH_WEIGHT(name) args.name = fk_tensor_present(&module->name) ? &module->name : NULL;
#define FKH_INIT(ctype, name) args.name = module->name;
#define FKH_ATTR(ctype, name) args.name = name;
#define FKH_END(name)                                                                                                \
    fk_door_call(ctx, &fk_##name##_op, &args, FK_OUTPUTS_ALLOCATED_BY_DOOR, path);                                   \
    return result;
#include "fk/op_grammar.h"
}

/* The call into the caller's outputs. */
#define FKH_OP_BEGIN(name, level, formula) void fk_##name##_out(fk_ctx *ctx
#define FKH_MODULE_BEGIN(name, level, formula)                                                                       \
    void fk_##name##_out(fk_ctx *ctx, const fk_##name##_module *module
#define FKH_END(name) )
#define FKH_OUT(name) , fk_tensor name
#define FKH_MUTATED(name) , fk_tensor name
#define FKH_READ(name) , fk_tensor name
#define FKH_ATTR(ctype, name) , ctype name
#include "fk/op_grammar.h"
{
#define FKH_OP_BEGIN(name, level, formula) fk_##name##_args args = {0}; const char *path = NULL;
#define FKH_MODULE_BEGIN(name, level, formula) fk_##name##_args args = {0}; const char *path = module->path;
#define FKH_OUT(name) args.name = &name;
#define FKH_MUTATED(name) args.name = fk_tensor_present(&name) ? &name : NULL;
#define FKH_READ(name) args.name = fk_tensor_present(&name) ? &name : NULL;
#define FKH_WEIGHT(name) args.name = fk_tensor_present(&module->name) ? &module->name : NULL;
#define FKH_INIT(ctype, name) args.name = module->name;
#define FKH_ATTR(ctype, name) args.name = name;
#define FKH_END(name) fk_door_call(ctx, &fk_##name##_op, &args, FK_OUTPUTS_GIVEN, path);
#include "fk/op_grammar.h"
}
