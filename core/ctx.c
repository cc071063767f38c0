/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a context, its sticky error and its step arena. */
#include "core/ctx_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/threads.h"

#define STEP_CHUNK_BYTES ((size_t)8 << 20)

/* Sorts the backend's implementations to their operators, best first. */
static fk_status collect_impls(fk_backend *backend, fkp_op_state *ops)
{
    for (int i = 0; i < fk_op_count(); i++)
        ops[i].reference = (fk_impl){.op = fk_op_at(i)->name, .name = "reference", .device = FK_CPU};
    for (int i = 0; i < backend->num_impls; i++) {
        const fk_impl *impl = backend->impls[i];
        const fk_op *op = fk_op_find(impl->op);
        if (!op) return fk_fail(FK_ERROR_INTERNAL, "backend %s implements unknown operator %s", backend->name, impl->op);
        fkp_op_state *state = &ops[op->index];
        if (state->num_impls == FKP_MAX_IMPLS)
            return fk_fail(FK_ERROR_INTERNAL, "more than %d implementations of %s", FKP_MAX_IMPLS, op->name);
        int at = state->num_impls++;
        for (; at > 0 && state->impls[at - 1]->priority < impl->priority; at--) state->impls[at] = state->impls[at - 1];
        state->impls[at] = impl;
    }
    return FK_OK;
}

fk_status fk_ctx_create(const fk_ctx_options *options, fk_ctx **out)
{
    *out = NULL;
    fk_backend *backend;
    FK_TRY(fk_backend_get(options->device, &backend));
    fk_ctx *ctx = calloc(1, sizeof *ctx);
    fkp_op_state *ops = calloc((size_t)fk_op_count(), sizeof *ops);
    if (!ctx || !ops) {
        free(ctx);
        free(ops);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a context");
    }
    ctx->options = *options;
    if (ctx->options.threads <= 0) ctx->options.threads = fkp_threads_available();
    ctx->backend = backend;
    ctx->ops = ops;
    fk_arena_init(&ctx->arena, backend, STEP_CHUNK_BYTES);
    fk_status status = collect_impls(backend, ops);
    if (status == FK_OK) status = backend->stream_create(backend, &ctx->stream);
    if (status != FK_OK) {
        free(ops);
        free(ctx);
        return status;
    }
    *out = ctx;
    return FK_OK;
}

void fk_ctx_destroy(fk_ctx *ctx)
{
    if (!ctx) return;
    ctx->backend->stream_synchronize(ctx->backend, ctx->stream);
    fk_arena_deinit(&ctx->arena);
    ctx->backend->stream_destroy(ctx->backend, ctx->stream);
    free(ctx->ops);
    free(ctx);
}

fk_device fk_ctx_device(const fk_ctx *ctx)
{
    return ctx->backend->device;
}

fk_backend *fk_ctx_backend(const fk_ctx *ctx)
{
    return ctx->backend;
}

void *fk_ctx_stream(const fk_ctx *ctx)
{
    return ctx->stream;
}

int fk_ctx_threads(const fk_ctx *ctx)
{
    return ctx->options.threads;
}

void fk_ctx_set_communicator(fk_ctx *ctx, struct fk_communicator *communicator)
{
    ctx->communicator = communicator;
}

struct fk_communicator *fk_ctx_communicator(const fk_ctx *ctx)
{
    return ctx->communicator;
}

fk_status fk_ctx_synchronize(fk_ctx *ctx)
{
    fk_status status = ctx->backend->stream_synchronize(ctx->backend, ctx->stream);
    if (status != FK_OK) fk_ctx_fail(ctx, status, "%s", fk_error_message());
    return ctx->status;
}

fk_status fk_ctx_status(const fk_ctx *ctx)
{
    return ctx->status;
}

const char *fk_ctx_error(const fk_ctx *ctx)
{
    return ctx->error;
}

fk_status fk_ctx_fail(fk_ctx *ctx, fk_status status, const char *format, ...)
{
    if (ctx->status != FK_OK) return ctx->status;
    char text[sizeof ctx->error];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ctx->status = status;
    snprintf(ctx->error, sizeof ctx->error, "%s%s%s%s%.800s", ctx->current ? ctx->current->name : "",
             ctx->path ? " at " : "", ctx->path ? ctx->path : "", ctx->current || ctx->path ? ": " : "", text);
    fk_fail(status, "%s", ctx->error);
    return status;
}

void fk_ctx_clear(fk_ctx *ctx)
{
    ctx->status = FK_OK;
    ctx->error[0] = 0;
}

fk_tensor fk_ctx_tensor(fk_ctx *ctx, fk_dtype dtype, int ndim, const int64_t *shape)
{
    fk_tensor t = FK_ABSENT;
    if (ctx->status != FK_OK) return t;
    fk_status status = fk_arena_tensor(&ctx->arena, dtype, ndim, shape, &t);
    if (status != FK_OK) {
        fk_ctx_fail(ctx, status, "%s", fk_error_message());
        return FK_ABSENT;
    }
    return t;
}

void fk_ctx_copy(fk_ctx *ctx, fk_tensor dst, fk_tensor src)
{
    if (ctx->status != FK_OK) return;
    if (!fk_tensor_same_shape(&dst, &src) || dst.dtype != src.dtype || !fk_tensor_has_rows(&dst) || !fk_tensor_has_rows(&src)) {
        char a[120], b[120];
        fk_ctx_fail(ctx, FK_ERROR_INTERNAL, "copy of %s to %s", fk_tensor_format(&src, a, sizeof a),
                    fk_tensor_format(&dst, b, sizeof b));
        return;
    }
    int64_t rows, cols;
    fk_rows_cols(&src, &rows, &cols);
    if (fk_tensor_is_contiguous(&dst) && fk_tensor_is_contiguous(&src)) cols *= rows, rows = rows > 0;
    for (int64_t r = 0; r < rows; r++) {
        size_t element = (size_t)fk_dtype_bits(src.dtype) / 8;
        fk_status status = ctx->backend->copy(ctx->backend, ctx->stream, (char *)dst.data + (size_t)(r * fk_row_stride(&dst)) * element,
                                              (char *)src.data + (size_t)(r * fk_row_stride(&src)) * element,
                                              (size_t)cols * element, FK_DEVICE_TO_DEVICE);
        if (status != FK_OK) fk_ctx_fail(ctx, status, "%s", fk_error_message());
    }
}

void *fk_ctx_scratch(fk_ctx *ctx, size_t bytes)
{
    void *data = NULL;
    if (ctx->status != FK_OK) return NULL;
    fk_status status = fk_arena_alloc(&ctx->arena, bytes, &data);
    if (status != FK_OK) fk_ctx_fail(ctx, status, "%s", fk_error_message());
    return data;
}

fk_mark fk_ctx_mark(fk_ctx *ctx)
{
    return ctx->arena.at;
}

void fk_ctx_release(fk_ctx *ctx, fk_mark mark)
{
    ctx->arena.at = mark;
}

void fk_ctx_reset(fk_ctx *ctx)
{
    fk_arena_reset(&ctx->arena);
}
