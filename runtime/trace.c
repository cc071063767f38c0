/* SPDX-License-Identifier: Apache-2.0 */
/* Recording slices at the door and writing them in the Trace Event Format. */
#define _GNU_SOURCE
#include "runtime/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fk/backend.h>
#include <fk/door.h>

#define MAX_SLICES (1 << 18) /* about 500 steps of a 30-layer model; 100 MB of text */
#define MAX_DEPTH 16

typedef struct slice {
    const fk_op *op; /* NULL: a named slice */
    const char *implementation;
    char *name;   /* of a named slice; shapes of a call */
    char *path;
    void *start, *stop; /* events; stop is NULL while it runs */
} slice;

struct fk_trace {
    fk_ctx *ctx;
    fk_backend *backend;
    fk_hook hook;
    void *origin; /* event: time 0 */
    slice *slices;
    int64_t count, capacity, left_out;
    int64_t open[MAX_DEPTH]; /* slices in progress; -1: left out */
    int depth;
    fk_status status; /* the first failure, told when writing */
};

static fk_status stamp(fk_trace *t, void **event)
{
    FK_TRY(t->backend->event_create(t->backend, event));
    return t->backend->event_record(t->backend, fk_ctx_stream(t->ctx), *event);
}

/* "input=f32[7, 576] weight=f32[576]" of the tensors a call reads. */
static char *shapes_of(const fk_op *op, const void *args)
{
    char text[1024] = "";
    size_t used = 0;
    for (int i = 0; i < op->num_fields && used < sizeof text; i++) {
        const fk_field *f = &op->fields[i];
        if (!fk_field_is_tensor(f) || f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX) continue;
        const fk_tensor *tensor = fk_op_tensor(op, args, i);
        char shape[160];
        if (!fk_tensor_present(tensor)) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", used ? " " : "", f->name,
                                 fk_tensor_format(tensor, shape, sizeof shape));
    }
    return strdup(text);
}

static void begin(fk_trace *t, const fk_op *op, const fk_impl *impl, char *take_name)
{
    int64_t index = -1;
    if (t->count == t->capacity && t->count < MAX_SLICES) {
        int64_t capacity = t->capacity ? 2 * t->capacity : 1024;
        slice *grown = realloc(t->slices, (size_t)capacity * sizeof *grown);
        if (grown) {
            t->slices = grown;
            t->capacity = capacity;
        }
    }
    if (t->count < t->capacity && t->depth < MAX_DEPTH) {
        slice *s = &t->slices[t->count];
        const char *path = op ? fk_door_path(t->ctx) : NULL;
        *s = (slice){.op = op, .implementation = impl ? impl->name : NULL, .name = take_name, .path = path ? strdup(path) : NULL};
        fk_status status = stamp(t, &s->start);
        if (t->status == FK_OK) t->status = status;
        index = t->count++;
    } else {
        free(take_name);
        t->left_out++;
    }
    if (t->depth < MAX_DEPTH) t->open[t->depth] = index;
    t->depth++;
}

static void end(fk_trace *t)
{
    int64_t index = --t->depth < MAX_DEPTH ? t->open[t->depth] : -1;
    if (index < 0) return;
    fk_status status = stamp(t, &t->slices[index].stop);
    if (t->status == FK_OK) t->status = status;
}

static void before_call(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    (void)ctx;
    begin(user, op, impl, shapes_of(op, args));
}

static void after_call(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    (void)ctx, (void)op, (void)impl, (void)args;
    end(user);
}

fk_status fk_trace_create(fk_ctx *ctx, fk_trace **out)
{
    *out = NULL;
    fk_trace *t = calloc(1, sizeof *t);
    if (!t) return fk_fail(FK_ERROR_MEMORY, "out of memory for a trace");
    t->ctx = ctx;
    t->backend = fk_ctx_backend(ctx);
    t->hook = (fk_hook){.before = before_call, .after = after_call, .user = t};
    fk_status status = stamp(t, &t->origin);
    if (status == FK_OK) status = fk_door_add_hook(ctx, &t->hook);
    if (status == FK_OK) *out = t;
    else fk_trace_destroy(t);
    return status;
}

void fk_trace_destroy(fk_trace *t)
{
    if (!t) return;
    fk_door_remove_hook(t->ctx, &t->hook);
    for (int64_t i = 0; i < t->count; i++) {
        free(t->slices[i].name);
        free(t->slices[i].path);
        if (t->slices[i].start) t->backend->event_destroy(t->backend, t->slices[i].start);
        if (t->slices[i].stop) t->backend->event_destroy(t->backend, t->slices[i].stop);
    }
    if (t->origin) t->backend->event_destroy(t->backend, t->origin);
    free(t->slices);
    free(t);
}

void fk_trace_begin(fk_trace *t, const char *name)
{
    begin(t, NULL, NULL, strdup(name));
}

void fk_trace_end(fk_trace *t)
{
    end(t);
}

int64_t fk_trace_slices(const fk_trace *t, int64_t *left_out)
{
    *left_out = t->left_out;
    return t->count;
}

static fk_status write_slice(fk_trace *t, const slice *s, FILE *file, bool first)
{
    double start, stop;
    FK_TRY(t->backend->event_elapsed(t->backend, t->origin, s->start, &start));
    FK_TRY(t->backend->event_elapsed(t->backend, t->origin, s->stop, &stop));
    json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f}", "name", s->op ? s->op->name : s->name ? s->name : "",
                              "cat", s->op ? (const char *[]){"", "L1", "L2", "L3"}[s->op->level] : "step", "ph", "X", "pid", 1,
                              "tid", 1, "ts", 1e6 * start, "dur", 1e6 * (stop - start));
    if (event && s->op)
        json_object_set_new(event, "args",
                            json_pack("{s:s, s:s, s:s}", "implementation", s->implementation, "tensors", s->name ? s->name : "",
                                      "path", s->path ? s->path : ""));
    char *text = event ? json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(event);
    if (!text) return fk_fail(FK_ERROR_MEMORY, "out of memory for a trace");
    fprintf(file, "%s\n%s", first ? "" : ",", text);
    free(text);
    return FK_OK;
}

fk_status fk_trace_write(fk_trace *t, const char *path)
{
    char device[32];
    FK_TRY(t->status);
    FK_TRY(t->backend->stream_synchronize(t->backend, fk_ctx_stream(t->ctx)));
    FILE *file = fopen(path, "w");
    if (!file) return fk_fail(FK_ERROR_IO, "cannot write the trace %s: %s", path, strerror(errno));
    fk_status status = FK_OK;
    fprintf(file, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    bool first = true;
    for (int64_t i = 0; i < t->count && status == FK_OK; i++) {
        if (!t->slices[i].stop) continue; /* a call that the trace's end cut */
        status = write_slice(t, &t->slices[i], file, first);
        first = false;
    }
    fprintf(file, "%s\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"%s\"}}\n]}\n", first ? "" : ",",
            fk_device_format(fk_ctx_device(t->ctx), device, sizeof device));
    bool failed = ferror(file) != 0;
    int error = errno;
    if (fclose(file) != 0) failed = true, error = errno;
    if (status == FK_OK && failed) status = fk_fail(FK_ERROR_IO, "writing the trace %s failed: %s", path, strerror(error));
    return status;
}
