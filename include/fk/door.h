/* SPDX-License-Identifier: Apache-2.0 */
/* The one door: every call of an operator, from a model, a layer or a test, passes fk_door_call. It checks shapes and
 * dtypes against the .def, allocates outputs, picks candidate, baseline or reference, and tells the hooks. */
#ifndef FK_DOOR_H
#define FK_DOOR_H

#include <fk/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fk_outputs { FK_OUTPUTS_ALLOCATED_BY_DOOR, FK_OUTPUTS_GIVEN } fk_outputs;

/* Calls `op` with its args struct. On failure the context keeps the first error and outputs become poison: absent
 * tensors that later calls pass on. `path`: the module's layer path or NULL. */
void fk_door_call(fk_ctx *ctx, const fk_op *op, void *args, fk_outputs outputs, const char *path);

/* The implementation that a call would take now; NULL with the context's error set when none fits. */
const fk_impl *fk_door_select(fk_ctx *ctx, const fk_op *op, const void *args);

/* A watcher at the door (capture, trace, integrity checks). Both functions are optional. `before` runs after the checks
 * and the allocation of outputs; `after` once the implementation returned. On a device neither implies a sync. */
typedef struct fk_hook {
    void (*before)(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args);
    void (*after)(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args);
    void *user;
} fk_hook;

/* At most 4 hooks; borrowed until removed. */
fk_status fk_door_add_hook(fk_ctx *ctx, const fk_hook *hook);
void fk_door_remove_hook(fk_ctx *ctx, const fk_hook *hook);
/* Depth of the current call: 1 for a call from the model, 2 for a call from its composition, ... */
int fk_door_depth(const fk_ctx *ctx);
/* Runs one implementation on arguments that were checked before: no checks, no hooks, no counts. Temporaries are given
 * back. For the harness, which times implementations and not the door. */
fk_status fk_door_run(fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args);
/* The operator of the innermost call in progress, NULL outside. */
const fk_op *fk_door_current(const fk_ctx *ctx);
/* Layer path of the innermost module in progress, NULL outside: for hooks. */
const char *fk_door_path(const fk_ctx *ctx);

/* Puts `impl` before the baselines of its operator in this context (borrowed). Fused baselines of operators composed of
 * it step aside. One per operator: a second one replaces the first. */
fk_status fk_door_install(fk_ctx *ctx, const fk_impl *impl);
/* Forces the implementation of that name for the operator ("reference", "scalar", "openblas", ...); calls it does not
 * support fail. NULL name lifts the pin. */
fk_status fk_door_pin(fk_ctx *ctx, const fk_op *op, const char *impl_name);
/* Calls that reached an installed implementation of `op`, and all calls of it, in this context. */
void fk_door_counts(const fk_ctx *ctx, const fk_op *op, int64_t *reached, int64_t *total);
void fk_door_reset_counts(fk_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
