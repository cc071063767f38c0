/* SPDX-License-Identifier: Apache-2.0 */
/* The door: check, allocate, choose, call, tell the hooks. */
#include <fk/door.h>

#include <stdio.h>
#include <string.h>

#include "core/ctx_internal.h"
#include "core/shape.h"

static bool is_output(const fk_field *f)
{
    return f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX;
}

static fk_status check_dtype(fk_ctx *ctx, const fk_op *op, const void *args, int index, const fk_tensor *t)
{
    const fk_field *f = &op->fields[index];
    if (!f->dtypes.as) {
        if (f->dtypes.mask >> t->dtype & 1) return FK_OK;
        /* Expected values are computed in float64 (core/golden.h). */
        if (ctx->options.references_only && t->dtype == FK_F64 && f->dtypes.mask & (1u << FK_F32 | 1u << FK_F16 | 1u << FK_BF16)) return FK_OK;
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%s is %s, allowed is %s", f->name, fk_dtype_name(t->dtype),
                           f->dtypes_text);
    }
    const fk_tensor *other = fk_op_tensor(op, args, fk_op_field(op, f->dtypes.as));
    if (!other || other->dtype == t->dtype) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%s is %s, but %s is %s", f->name, fk_dtype_name(t->dtype), f->dtypes.as,
                       fk_dtype_name(other->dtype));
}

static fk_status check_tensor(fk_ctx *ctx, const fk_op *op, const void *args, int index, const fk_tensor *t,
                              fkp_bindings *bindings)
{
    const fk_field *f = &op->fields[index];
    char why[160], shape[160], device[16], own[16];
    if (t->device.type != ctx->backend->device.type || t->device.id != ctx->backend->device.id)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%s is on %s, the context on %s", f->name,
                           fk_device_format(t->device, device, sizeof device),
                           fk_device_format(ctx->backend->device, own, sizeof own));
    FK_TRY(check_dtype(ctx, op, args, index, t));
    if (!fkp_shape_match(bindings, f->shape, t->ndim, t->shape, why, sizeof why))
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%s is %s, expected %s: %s", f->name,
                           fk_tensor_format(t, shape, sizeof shape), f->shape, why);
    return FK_OK;
}

/* Checks what the caller gave, binding dimension names on the way. */
static fk_status check_inputs(fk_ctx *ctx, const fk_op *op, const void *args, fk_outputs outputs, fkp_bindings *bindings)
{
    fkp_bindings_init(bindings);
    fkp_bindings_add_scalars(bindings, op, args);
    for (int pass = 0; pass < 2; pass++) /* inputs bind the names that outputs need */
        for (int i = 0; i < op->num_fields; i++) {
            const fk_field *f = &op->fields[i];
            if (!fk_field_is_tensor(f) || is_output(f) != (pass == 1)) continue;
            if (pass == 1 && outputs == FK_OUTPUTS_ALLOCATED_BY_DOOR) continue;
            const fk_tensor *t = fk_op_tensor(op, args, i);
            if (fk_tensor_present(t)) FK_TRY(check_tensor(ctx, op, args, i, t, bindings));
            else if (!f->optional) return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%s is missing", f->name);
        }
    return FK_OK;
}

static fk_status allocate_outputs(fk_ctx *ctx, const fk_op *op, void *args, const fkp_bindings *bindings)
{
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        if (!fk_field_is_tensor(f) || !is_output(f)) continue;
        int ndim = 0;
        int64_t shape[FK_MAX_NDIM];
        char why[160];
        if (!fkp_shape_evaluate(bindings, f->shape, &ndim, shape, why, sizeof why))
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "size of %s %s: %s", f->name, f->shape, why);
        fk_dtype dtype = FK_NONE;
        if (f->dtypes.as) {
            const fk_tensor *other = fk_op_tensor(op, args, fk_op_field(op, f->dtypes.as));
            if (other) dtype = other->dtype;
        } else {
            dtype = (fk_dtype)__builtin_ctz(f->dtypes.mask);
        }
        *fk_op_tensor(op, args, i) = fk_ctx_tensor(ctx, dtype, ndim, shape);
        if (ctx->status != FK_OK) return ctx->status;
    }
    return FK_OK;
}

static void poison_outputs(const fk_op *op, void *args)
{
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        if (!fk_field_is_tensor(f) || !fk_field_is_written(f)) continue;
        fk_tensor *t = fk_op_tensor(op, args, i);
        if (t) *t = FK_ABSENT;
    }
}

static bool steps_aside(const fk_ctx *ctx, const fk_op *op, const fk_impl *impl)
{
    if (!impl->fused) return false;
    for (int i = 0; i < fk_op_count(); i++)
        if (ctx->ops[i].installed && fk_op_composed_of(op, fk_op_at(i)->name)) return true;
    return false;
}

const fk_impl *fk_door_select(fk_ctx *ctx, const fk_op *op, const void *args)
{
    const fkp_op_state *state = &ctx->ops[op->index];
    if (state->installed) return state->installed;
    bool reference_runs = fk_op_is_composition(op) || ctx->backend->device.type == FK_CPU;
    if (ctx->options.references_only || (state->pin && strcmp(state->pin, "reference") == 0)) {
        if (reference_runs) return &state->reference;
        fk_ctx_fail(ctx, FK_ERROR_UNSUPPORTED, "the reference of %s runs on the CPU only", op->name);
        return NULL;
    }
    const fk_impl *best = NULL;
    for (int i = 0; i < state->num_impls && !best; i++) {
        const fk_impl *impl = state->impls[i];
        if (state->pin ? strcmp(state->pin, impl->name) != 0 : steps_aside(ctx, op, impl)) continue;
        if (!impl->supports || impl->supports(args)) best = impl;
    }
    if (best) return best;
    if (state->pin)
        fk_ctx_fail(ctx, FK_ERROR_UNSUPPORTED, "no implementation %s of %s that supports this call", state->pin, op->name);
    else if (!reference_runs)
        fk_ctx_fail(ctx, FK_ERROR_UNSUPPORTED, "no implementation of %s on %s supports this call", op->name,
                    ctx->backend->name);
    else
        return &state->reference;
    return NULL;
}

static fk_status run(fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    fk_mark mark = fk_ctx_mark(ctx); /* outputs stand before it; temporaries of the call go with it */
    fk_status status = impl->run ? impl->run(ctx, args, impl->user) : op->reference(ctx, args, NULL);
    fk_ctx_release(ctx, mark);
    if (status != FK_OK) fk_ctx_fail(ctx, status, "%s", fk_error_message());
    return ctx->status;
}

fk_status fk_door_run(fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    if (ctx->status != FK_OK) return ctx->status;
    const fk_op *caller = ctx->current;
    ctx->current = op;
    ctx->depth++;
    run(ctx, op, impl, args);
    ctx->depth--;
    ctx->current = caller;
    return ctx->status;
}

void fk_door_call(fk_ctx *ctx, const fk_op *op, void *args, fk_outputs outputs, const char *path)
{
    if (ctx->status != FK_OK) {
        poison_outputs(op, args);
        return;
    }
    const fk_op *caller = ctx->current;
    const char *caller_path = ctx->path;
    ctx->current = op;
    if (path) ctx->path = path;
    ctx->depth++;

    fkp_bindings bindings;
    const fk_impl *impl = NULL;
    if (check_inputs(ctx, op, args, outputs, &bindings) == FK_OK &&
        (outputs == FK_OUTPUTS_GIVEN || allocate_outputs(ctx, op, args, &bindings) == FK_OK) &&
        (!op->check || op->check(ctx, args) == FK_OK))
        impl = fk_door_select(ctx, op, args);
    if (impl) {
        fkp_op_state *state = &ctx->ops[op->index];
        state->total++;
        if (impl == state->installed) state->reached++;
        for (int i = 0; i < ctx->num_hooks; i++)
            if (ctx->hooks[i]->before) ctx->hooks[i]->before(ctx->hooks[i]->user, ctx, op, impl, args);
        run(ctx, op, impl, args);
        for (int i = ctx->num_hooks - 1; i >= 0; i--)
            if (ctx->hooks[i]->after) ctx->hooks[i]->after(ctx->hooks[i]->user, ctx, op, impl, args);
    }
    if (ctx->status != FK_OK) poison_outputs(op, args);

    ctx->depth--;
    ctx->current = caller;
    ctx->path = caller_path;
}

fk_status fk_door_add_hook(fk_ctx *ctx, const fk_hook *hook)
{
    if (ctx->num_hooks == FKP_MAX_HOOKS) return fk_fail(FK_ERROR_INTERNAL, "more than %d hooks", FKP_MAX_HOOKS);
    ctx->hooks[ctx->num_hooks++] = hook;
    return FK_OK;
}

void fk_door_remove_hook(fk_ctx *ctx, const fk_hook *hook)
{
    int n = 0;
    for (int i = 0; i < ctx->num_hooks; i++)
        if (ctx->hooks[i] != hook) ctx->hooks[n++] = ctx->hooks[i];
    ctx->num_hooks = n;
}

int fk_door_depth(const fk_ctx *ctx)
{
    return ctx->depth;
}

const fk_op *fk_door_current(const fk_ctx *ctx)
{
    return ctx->current;
}

const char *fk_door_path(const fk_ctx *ctx)
{
    return ctx->path;
}

fk_status fk_door_install(fk_ctx *ctx, const fk_impl *impl)
{
    const fk_op *op = fk_op_find(impl->op);
    if (!op) return fk_fail(FK_ERROR_INVALID, "candidate for unknown operator %s", impl->op);
    if ((int32_t)impl->device != ctx->backend->device.type)
        return fk_fail(FK_ERROR_INVALID, "candidate %s for %s is not made for %s", impl->name, impl->op, ctx->backend->name);
    ctx->ops[op->index].installed = impl;
    return FK_OK;
}

fk_status fk_door_pin(fk_ctx *ctx, const fk_op *op, const char *impl_name)
{
    ctx->ops[op->index].pin = impl_name;
    return FK_OK;
}

void fk_door_counts(const fk_ctx *ctx, const fk_op *op, int64_t *reached, int64_t *total)
{
    const fkp_op_state *state = &ctx->ops[op->index];
    *reached = state->reached;
    *total = state->total;
}

void fk_door_reset_counts(fk_ctx *ctx)
{
    for (int i = 0; i < fk_op_count(); i++) ctx->ops[i].reached = ctx->ops[i].total = 0;
}
