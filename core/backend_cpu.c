/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: host memory, no streams, the monotonic clock as event, and the kernels of the levels this machine has.
 * Levels below the one in force stay in the table with lower priority, so that tests can pin them by name. */
#define _GNU_SOURCE
#include "core/backend_cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/cpu_features.h"
#include "core/cpu_libraries.h"
#include "core/cpu_measure.h"
#include "core/dtype.h"
#include "core/seeded.h"
#include "core/threads.h"

#define FKP_CPU_IMPL(name)                                                                                           \
    extern const fk_impl fkp_cpu_##name##_scalar, fkp_cpu_##name##_avx2, fkp_cpu_##name##_avx512;
#include "cpu_impls.def"
#undef FKP_CPU_IMPL

/* [op][level] */
static const fk_impl *const by_level[][FKP_CPU_LEVELS] = {
#define FKP_CPU_IMPL(name) {&fkp_cpu_##name##_scalar, &fkp_cpu_##name##_avx2, &fkp_cpu_##name##_avx512},
#include "cpu_impls.def"
#undef FKP_CPU_IMPL
};

#define NUM_OPS (sizeof by_level / sizeof by_level[0])

static fk_status cpu_alloc(fk_backend *backend, size_t bytes, void **out)
{
    (void)backend;
    size_t rounded = (bytes + 255) & ~(size_t)255;
    *out = rounded < bytes ? NULL : aligned_alloc(256, rounded ? rounded : 256);
    return *out ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of host memory: %zu bytes wanted", bytes);
}

static void cpu_free(fk_backend *backend, void *data)
{
    (void)backend;
    free(data);
}

static fk_status cpu_copy(fk_backend *backend, void *stream, void *dst, const void *src, size_t bytes, fk_copy_kind kind)
{
    (void)backend, (void)stream, (void)kind;
    if (bytes) memmove(dst, src, bytes);
    return FK_OK;
}

static fk_status cpu_fill_bytes(fk_backend *backend, void *stream, void *dst, int value, size_t bytes)
{
    (void)backend, (void)stream;
    if (bytes) memset(dst, value, bytes);
    return FK_OK;
}

typedef struct seeded_job {
    char *dst;
    fk_dtype dtype;
    uint64_t key, first;
    fkp_seeded_scale scale;
} seeded_job;

static void seeded_part(void *user, int64_t begin, int64_t end)
{
    const seeded_job *job = user;
    size_t size = (size_t)fk_dtype_bits(job->dtype) / 8;
    for (int64_t i = begin; i < end; i++) {
        float value = fkp_seeded_value(job->key, job->first + (uint64_t)i, job->scale);
        void *dst = job->dst + (size_t)i * size;
        if (job->dtype == FK_F32) memcpy(dst, &value, sizeof value);
        else fk_store_element(dst, job->dtype, (double)value);
    }
}

static fk_status cpu_fill_seeded(fk_backend *backend, void *stream, void *dst, fk_dtype dtype, uint64_t key, int offset,
                                 int exponent, uint64_t first, uint64_t count)
{
    (void)backend, (void)stream;
    seeded_job job = {dst, dtype, key, first, {offset, exponent}};
    fkp_parallel_for(fkp_threads_available(), (int64_t)count, 1 << 16, seeded_part, &job);
    return FK_OK;
}

static fk_status cpu_stream_create(fk_backend *backend, void **out)
{
    (void)backend;
    *out = NULL;
    return FK_OK;
}

static void cpu_stream_destroy(fk_backend *backend, void *stream)
{
    (void)backend, (void)stream;
}

static fk_status cpu_stream_synchronize(fk_backend *backend, void *stream)
{
    (void)backend, (void)stream;
    return FK_OK;
}

static fk_status cpu_event_create(fk_backend *backend, void **out)
{
    (void)backend;
    *out = calloc(1, sizeof(struct timespec));
    return *out ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for an event");
}

static void cpu_event_destroy(fk_backend *backend, void *event)
{
    (void)backend;
    free(event);
}

static fk_status cpu_event_record(fk_backend *backend, void *stream, void *event)
{
    (void)backend, (void)stream;
    clock_gettime(CLOCK_MONOTONIC_RAW, event);
    return FK_OK;
}

static fk_status cpu_event_elapsed(fk_backend *backend, void *start, void *stop, double *seconds)
{
    (void)backend;
    const struct timespec *a = start, *b = stop;
    *seconds = (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
    return FK_OK;
}

static fk_status cpu_shared_create(fk_backend *backend, size_t bytes, fk_shared_memory *out)
{
    (void)backend;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded = (bytes + page - 1) / page * page;
    if (!rounded) rounded = page;
    int fd = memfd_create("fastkernels", MFD_CLOEXEC);
    if (fd < 0) return fk_fail(FK_ERROR_MEMORY, "memfd_create: %s", strerror(errno));
    if (ftruncate(fd, (off_t)rounded) != 0) {
        int error = errno;
        close(fd);
        return fk_fail(FK_ERROR_MEMORY, "shared memory of %zu bytes: %s", rounded, strerror(error));
    }
    void *data = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        int error = errno;
        close(fd);
        return fk_fail(FK_ERROR_MEMORY, "mapping %zu shared bytes: %s", rounded, strerror(error));
    }
    *out = (fk_shared_memory){.data = data, .bytes = rounded, .fd = fd};
    return FK_OK;
}

static fk_status cpu_shared_open(fk_backend *backend, int fd, size_t bytes, fk_shared_memory *out)
{
    (void)backend;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return fk_fail(FK_ERROR_MEMORY, "mapping %zu shared bytes: %s", bytes, strerror(errno));
    *out = (fk_shared_memory){.data = data, .bytes = bytes, .fd = fd};
    return FK_OK;
}

static void cpu_shared_close(fk_backend *backend, fk_shared_memory *memory)
{
    (void)backend;
    if (memory->data) munmap(memory->data, memory->bytes);
    if (memory->fd >= 0) close(memory->fd);
    *memory = (fk_shared_memory){.fd = -1};
}

static void cpu_destroy(fk_backend *backend)
{
    free((void *)(uintptr_t)backend->impls);
    free(backend);
}

fk_status fkp_backend_cpu_create(fk_backend **out)
{
    fkp_cpu_level level;
    FK_TRY(fkp_cpu_level_get(&level));
    fk_backend *backend = calloc(1, sizeof *backend);
    int num_library_impls;
    const fk_impl *const *library_impls = fkp_cpu_library_impls(&num_library_impls);
    const fk_impl **impls = calloc(NUM_OPS * FKP_CPU_LEVELS + (size_t)num_library_impls + 1, sizeof *impls);
    if (!backend || !impls) {
        free(backend);
        free(impls);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for the CPU backend");
    }
    int n = 0;
    for (size_t op = 0; op < NUM_OPS; op++)
        for (int l = 0; l <= (int)level; l++) impls[n++] = by_level[op][l];
    for (int i = 0; i < num_library_impls; i++) impls[n++] = library_impls[i];
    *backend = (fk_backend){
        .abi = FK_BACKEND_ABI,
        .name = "cpu",
        .device = {FK_CPU, 0},
        .impls = impls,
        .num_impls = n,
        .destroy = cpu_destroy,
        .describe = fkp_cpu_describe,
        .measure = fkp_cpu_measure,
        .alloc = cpu_alloc,
        .free = cpu_free,
        .copy = cpu_copy,
        .fill_bytes = cpu_fill_bytes,
        .fill_seeded = cpu_fill_seeded,
        .stream_create = cpu_stream_create,
        .stream_destroy = cpu_stream_destroy,
        .stream_synchronize = cpu_stream_synchronize,
        .event_create = cpu_event_create,
        .event_destroy = cpu_event_destroy,
        .event_record = cpu_event_record,
        .event_elapsed = cpu_event_elapsed,
        .flush_cache = fkp_cpu_flush_cache,
        .shared_create = cpu_shared_create,
        .shared_open = cpu_shared_open,
        .shared_close = cpu_shared_close,
    };
    *out = backend;
    return FK_OK;
}
