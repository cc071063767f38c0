/* SPDX-License-Identifier: Apache-2.0 */
/* Loading weights: from a file's source by rows over the threads, straight into host memory or through a staging buffer to
 * a device; or seeded, where they are needed. */
#include "runtime/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/seeded.h"
#include "core/threads.h"

#define DEVICE_CHUNK_BYTES ((size_t)64 << 20)
#define HOST_CHUNK_BYTES ((size_t)1 << 20)
#define STAGING_BYTES ((int64_t)64 << 20)

struct fk_weights {
    fk_backend *backend;
    fk_dtype dtype;
    const fk_weight_source *source;
    uint64_t seed;
    fk_arena arena;                              /* tensors, on the device */
    struct host_block { struct host_block *next; } *host; /* structs and names, each its own block */
    int64_t bytes;
    fk_status status;
};

static void fail(fk_weights *w, fk_status status)
{
    if (w->status == FK_OK) w->status = status;
}

fk_status fk_weights_create(fk_backend *backend, fk_dtype dtype, const fk_weight_source *source, uint64_t seed,
                            fk_weights **out)
{
    fk_weights *w = calloc(1, sizeof *w);
    *out = w;
    if (!w) return fk_fail(FK_ERROR_MEMORY, "out of memory for a weight loader");
    *w = (fk_weights){.backend = backend, .dtype = dtype, .source = source, .seed = seed};
    fk_arena_init(&w->arena, backend, DEVICE_CHUNK_BYTES);
    return FK_OK;
}

void fk_weights_destroy(fk_weights *w)
{
    if (!w) return;
    fk_arena_deinit(&w->arena);
    while (w->host) {
        struct host_block *next = w->host->next;
        free(w->host);
        w->host = next;
    }
    free(w);
}

int64_t fk_weights_bytes(const fk_weights *w)
{
    return w->bytes;
}

fk_dtype fk_weights_dtype(const fk_weights *w)
{
    return w->dtype;
}

fk_status fk_weights_status(const fk_weights *w)
{
    return w->status;
}

void *fk_weights_alloc(fk_weights *w, size_t bytes)
{
    size_t header = 64; /* keeps the caller's part aligned */
    struct host_block *block = bytes < SIZE_MAX - header ? calloc(1, header + bytes) : NULL;
    if (!block) {
        fail(w, fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of model data", bytes));
        return NULL;
    }
    block->next = w->host;
    w->host = block;
    return (char *)block + header;
}

const char *fk_weights_name(fk_weights *w, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = fk_weights_alloc(w, strlen(text) + 1);
    return copy ? strcpy(copy, text) : "";
}

static bool allocate(fk_weights *w, fk_dtype dtype, int ndim, const int64_t *shape, fk_tensor *out)
{
    *out = FK_ABSENT;
    if (w->status != FK_OK) return false;
    fail(w, fk_arena_tensor(&w->arena, dtype, ndim, shape, out));
    if (w->status == FK_OK) w->bytes += (int64_t)fk_tensor_nbytes(out);
    return w->status == FK_OK;
}

/* Conversion of one tensor's rows to host memory in the wanted dtype. */
typedef struct read_job {
    const fk_weight_source *source;
    const char *name;
    int64_t first, cols;
    char *dst;
    fk_dtype dtype;
    fk_status status;
    char message[512];
} read_job;

static void read_part(void *user, int64_t begin, int64_t end)
{
    read_job *job = user;
    size_t element = (size_t)fk_dtype_bits(job->dtype) / 8;
    float *row = job->dtype == FK_F32 ? NULL : malloc((size_t)job->cols * sizeof *row + 1);
    fk_status status = row || job->dtype == FK_F32 ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for a row");
    for (int64_t r = begin; r < end && status == FK_OK; r++) {
        char *dst = job->dst + (size_t)(r * job->cols) * element;
        status = job->source->read_rows(job->source->self, job->name, job->first + r, job->first + r + 1,
                                        row ? row : (float *)(void *)dst);
        if (status == FK_OK && row) fk_convert_from_f32(dst, job->dtype, row, job->cols);
    }
    free(row);
    if (status == FK_OK) return;
    snprintf(job->message, sizeof job->message, "%s", fk_error_message()); /* any failing thread's message will do */
    __atomic_store_n(&job->status, status, __ATOMIC_RELEASE);
}

static fk_status read_to_host(read_job *job, int64_t rows)
{
    fkp_parallel_for(fkp_threads_available(), rows, 1 + (int64_t)(HOST_CHUNK_BYTES / 4) / (job->cols + 1), read_part, job);
    if (job->status != FK_OK) return fk_fail(job->status, "%s", job->message);
    return FK_OK;
}

static fk_status read_to_device(fk_weights *w, read_job *job, int64_t rows, char *dst)
{
    size_t row_bytes = (size_t)job->cols * (size_t)fk_dtype_bits(job->dtype) / 8;
    int64_t step = STAGING_BYTES / (int64_t)(row_bytes + 1) + 1;
    if (step > rows) step = rows;
    fk_status status = FK_OK;
    job->dst = malloc((size_t)step * row_bytes + 1);
    if (!job->dst) return fk_fail(FK_ERROR_MEMORY, "out of memory for a staging buffer");
    for (int64_t r = 0; r < rows && status == FK_OK; r += step) {
        int64_t count = rows - r < step ? rows - r : step;
        job->first = r;
        status = read_to_host(job, count);
        if (status == FK_OK)
            status = w->backend->copy(w->backend, NULL, dst + (size_t)r * row_bytes, job->dst, (size_t)count * row_bytes,
                                      FK_HOST_TO_DEVICE);
        if (status == FK_OK) status = w->backend->stream_synchronize(w->backend, NULL);
    }
    free(job->dst);
    return status;
}

/* Fills dst, rows of cols elements of the model's dtype, with the tensor `name`, whose full shape is given. */
static fk_status fill(fk_weights *w, const char *name, int ndim, const int64_t *shape, int64_t rows, int64_t cols, char *dst)
{
    if (!w->source) {
        fkp_seeded_scale scale = fkp_seeded_scale_for(name, ndim, shape);
        return w->backend->fill_seeded(w->backend, NULL, dst, w->dtype, fkp_seeded_key(w->seed, name), scale.offset,
                                       scale.exponent, 0, (uint64_t)(rows * cols));
    }
    int file_ndim;
    int64_t file_shape[FK_MAX_NDIM];
    if (!w->source->find(w->source->self, name, &file_ndim, file_shape))
        return fk_fail(FK_ERROR_INVALID, "the file has no tensor %s", name);
    fk_tensor wanted = fk_tensor_wrap(NULL, w->dtype, (fk_device){FK_CPU, 0}, ndim, shape);
    fk_tensor found = fk_tensor_wrap(NULL, w->dtype, (fk_device){FK_CPU, 0}, file_ndim, file_shape);
    if (!fk_tensor_same_shape(&wanted, &found)) {
        char a[120], b[120];
        return fk_fail(FK_ERROR_INVALID, "tensor %s is %s in the file, the config asks for %s", name,
                       fk_tensor_format(&found, a, sizeof a), fk_tensor_format(&wanted, b, sizeof b));
    }
    read_job job = {.source = w->source, .name = name, .cols = cols, .dst = dst, .dtype = w->dtype};
    if (w->backend->device.type == FK_CPU) return read_to_host(&job, rows);
    return read_to_device(w, &job, rows, dst);
}

fk_tensor fk_weights_get(fk_weights *w, const char *name, int ndim, const int64_t *shape)
{
    fk_tensor t;
    int64_t cols = ndim > 0 ? shape[ndim - 1] : 1;
    if (!allocate(w, w->dtype, ndim, shape, &t)) return FK_ABSENT;
    fail(w, fill(w, name, ndim, shape, cols ? fk_tensor_numel(&t) / cols : 0, cols, t.data));
    return w->status == FK_OK ? t : FK_ABSENT;
}

bool fk_weights_have(const fk_weights *w, const char *name)
{
    int ndim;
    int64_t shape[FK_MAX_NDIM];
    return !w->source || w->source->find(w->source->self, name, &ndim, shape);
}

fk_tensor fk_weights_get_optional(fk_weights *w, const char *name, int ndim, const int64_t *shape)
{
    return fk_weights_have(w, name) ? fk_weights_get(w, name, ndim, shape) : FK_ABSENT;
}

fk_tensor fk_weights_merge(fk_weights *w, int count, const fk_weights_part *parts, int ndim, int64_t cols)
{
    int64_t rows = 0, row = 0;
    for (int i = 0; i < count; i++) rows += parts[i].rows;
    fk_tensor t;
    int64_t shape[2] = {rows, cols};
    if (!allocate(w, w->dtype, ndim, shape, &t)) return FK_ABSENT;
    for (int i = 0; i < count && w->status == FK_OK; i++) {
        int64_t part_shape[2] = {parts[i].rows, cols};
        char *dst = (char *)t.data + (size_t)(row * cols) * (size_t)fk_dtype_bits(w->dtype) / 8;
        /* A vector is one row of its own length for a source. */
        fail(w, ndim == 1 ? fill(w, parts[i].name, 1, part_shape, 1, parts[i].rows, dst)
                          : fill(w, parts[i].name, 2, part_shape, parts[i].rows, cols, dst));
        row += parts[i].rows;
    }
    return w->status == FK_OK ? t : FK_ABSENT;
}

fk_tensor fk_weights_table(fk_weights *w, fk_dtype dtype, int ndim, const int64_t *shape, const float *values)
{
    fk_tensor t;
    if (!allocate(w, dtype, ndim, shape, &t)) return FK_ABSENT;
    int64_t n = fk_tensor_numel(&t);
    void *host = malloc(fk_tensor_nbytes(&t) + 1);
    if (!host) {
        fail(w, fk_fail(FK_ERROR_MEMORY, "out of memory for a table of %lld values", (long long)n));
        return FK_ABSENT;
    }
    fk_convert_from_f32(host, dtype, values, n);
    fail(w, w->backend->copy(w->backend, NULL, t.data, host, fk_tensor_nbytes(&t), FK_HOST_TO_DEVICE));
    fail(w, w->backend->stream_synchronize(w->backend, NULL));
    free(host);
    return w->status == FK_OK ? t : FK_ABSENT;
}
