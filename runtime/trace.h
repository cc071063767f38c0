/* SPDX-License-Identifier: Apache-2.0 */
/* A time line of the calls at the door, for chrome://tracing and Perfetto: one slice a call, with operator, implementation,
 * shapes and layer path, nested as the calls are. Times are those of the device: stamps in its stream, read at the end. */
#ifndef FK_RUNTIME_TRACE_H
#define FK_RUNTIME_TRACE_H

#include <fk/ctx.h>

typedef struct fk_trace fk_trace;

/* Watches the context from now on; destroy it before the context. */
fk_status fk_trace_create(fk_ctx *ctx, fk_trace **out);
void fk_trace_destroy(fk_trace *trace);
/* A slice around calls: "prefill", "decode". The name is copied. */
void fk_trace_begin(fk_trace *trace, const char *name);
void fk_trace_end(fk_trace *trace);
/* Writes the trace as JSON; waits for the device. */
fk_status fk_trace_write(fk_trace *trace, const char *path);
/* Slices recorded, and those left out because the trace was full. */
int64_t fk_trace_slices(const fk_trace *trace, int64_t *left_out);

#endif
