/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a forward pass: device and stream, the step arena, the sticky error, and what the door needs. It belongs
 * to one thread. The first failure is recorded with operator, layer path and shapes; later calls do nothing, so that a
 * forward pass reads like the paper and checks once, at its end. Read nothing back to the host before that check. */
#ifndef FK_CTX_H
#define FK_CTX_H

#include <fk/backend.h>
#include <fk/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_ctx_options {
    fk_device device;
    int threads;          /* CPU threads; 0: all that the process may use */
    bool references_only; /* no baseline, no candidate: the specification */
} fk_ctx_options;

fk_status fk_ctx_create(const fk_ctx_options *options, fk_ctx **out);
void fk_ctx_destroy(fk_ctx *ctx);

fk_device fk_ctx_device(const fk_ctx *ctx);
fk_backend *fk_ctx_backend(const fk_ctx *ctx);
/* The stream of the context's device; NULL on the CPU. CUDA code casts it to cudaStream_t. */
void *fk_ctx_stream(const fk_ctx *ctx);
int fk_ctx_threads(const fk_ctx *ctx);
/* Waits for the device; device faults become the context's error. */
fk_status fk_ctx_synchronize(fk_ctx *ctx);

/* The tensor-parallel group that the context's rank belongs to (core/communicator.h), borrowed; NULL, the default: one rank. */
struct fk_communicator;
void fk_ctx_set_communicator(fk_ctx *ctx, struct fk_communicator *communicator);
struct fk_communicator *fk_ctx_communicator(const fk_ctx *ctx);

/* Sticky error. */
fk_status fk_ctx_status(const fk_ctx *ctx);
/* "rms_norm at model.layers.3: input has ...", "" when nothing failed. */
const char *fk_ctx_error(const fk_ctx *ctx);
/* Records the failure unless one is recorded already; returns the recorded status. */
fk_status fk_ctx_fail(fk_ctx *ctx, fk_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Forgets the error, for a caller that handled it (a server dropping one request). */
void fk_ctx_clear(fk_ctx *ctx);

/* Step arena, on the context's device. Tensors live until the enclosing composition returns, or until reset. */
fk_tensor fk_ctx_tensor(fk_ctx *ctx, fk_dtype dtype, int ndim, const int64_t *shape);
/* Copies between two tensors of rows (fk_tensor_has_rows) of one shape and dtype, on the context's device, in its stream. */
void fk_ctx_copy(fk_ctx *ctx, fk_tensor dst, fk_tensor src);
/* Device memory that the current operator may use until it returns; NULL (and the sticky error) when there is none. */
void *fk_ctx_scratch(fk_ctx *ctx, size_t bytes);
/* Everything allocated after the mark is given back by release. */
typedef struct fk_mark {
    size_t chunk, used;
} fk_mark;
fk_mark fk_ctx_mark(fk_ctx *ctx);
void fk_ctx_release(fk_ctx *ctx, fk_mark mark);
void fk_ctx_reset(fk_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
