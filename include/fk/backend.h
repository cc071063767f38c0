/* SPDX-License-Identifier: Apache-2.0 */
/* A backend: memory, streams, time and kernels of one kind of device. The CPU's is in the library; the others are plugins
 * (libfastkernels_<name>.so beside it), opened on first use, so that nothing here depends on a GPU library. */
#ifndef FK_BACKEND_H
#define FK_BACKEND_H

#include <fk/op.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FK_BACKEND_ABI 2

typedef enum fk_copy_kind { FK_HOST_TO_DEVICE, FK_DEVICE_TO_HOST, FK_DEVICE_TO_DEVICE } fk_copy_kind;

/* What the device is and what it can do at best. Rates are 0 when unknown; measured ones come from `doctor`. */
typedef struct fk_device_info {
    char name[128];       /* "NVIDIA H200", "AMD EPYC ..." */
    char description[256];/* driver and library versions; instruction sets */
    int64_t total_bytes;
    int64_t last_level_cache_bytes;
    int processors; /* SMs; cores */
    int capability; /* 90 for sm_90; 0 on the CPU */
} fk_device_info;

/* Measured ceilings of the device. */
typedef struct fk_roofline {
    double copy_bytes_s, read_bytes_s; /* device memory: copy counts bytes read plus written */
    double f32_flops, bf16_flops;      /* matrix products; 0 when the device has no faster way than f32 */
    double empty_call_s;               /* cost of a call that does nothing */
    double empty_replay_s;             /* the same in a graph that is replayed; 0 where the device has none */
} fk_roofline;

/* Memory that another process can map: the judge's buffers. The descriptor goes over a socket. */
typedef struct fk_shared_memory {
    void *data;
    size_t bytes; /* rounded up to the device's granularity */
    int fd;
    uint64_t handle; /* backend's own */
} fk_shared_memory;

typedef struct fk_backend fk_backend;
struct fk_backend {
    int abi; /* FK_BACKEND_ABI */
    const char *name; /* "cpu", "cuda" */
    fk_device device;
    void *state;

    const fk_impl *const *impls;
    int num_impls;

    void (*destroy)(fk_backend *backend);
    fk_status (*describe)(fk_backend *backend, fk_device_info *info);
    fk_status (*measure)(fk_backend *backend, fk_roofline *roofline);

    /* Memory of the device, aligned to at least 256 bytes. */
    fk_status (*alloc)(fk_backend *backend, size_t bytes, void **out);
    void (*free)(fk_backend *backend, void *data);
    fk_status (*copy)(fk_backend *backend, void *stream, void *dst, const void *src, size_t bytes, fk_copy_kind kind);
    fk_status (*fill_bytes)(fk_backend *backend, void *stream, void *dst, int value, size_t bytes);
    /* Seeded values (core/seeded.h) of elements [first, first + count) into contiguous memory of the device. */
    fk_status (*fill_seeded)(fk_backend *backend, void *stream, void *dst, fk_dtype dtype, uint64_t key, int offset, int exponent,
                             uint64_t first, uint64_t count);

    fk_status (*stream_create)(fk_backend *backend, void **out);
    void (*stream_destroy)(fk_backend *backend, void *stream);
    fk_status (*stream_synchronize)(fk_backend *backend, void *stream);

    /* Time stamps in a stream. */
    fk_status (*event_create)(fk_backend *backend, void **out);
    void (*event_destroy)(fk_backend *backend, void *event);
    fk_status (*event_record)(fk_backend *backend, void *stream, void *event);
    /* Seconds between two recorded events; waits for the second. */
    fk_status (*event_elapsed)(fk_backend *backend, void *start, void *stop, double *seconds);

    /* Graphs: what is sent to the stream between begin and end is kept instead of done, and done by every replay. The end
     * fails when something was sent that no graph can hold (a synchronisation, an allocation), and leaves the stream as it
     * was before the beginning. NULL where the device has none. */
    fk_status (*graph_begin)(fk_backend *backend, void *stream);
    fk_status (*graph_end)(fk_backend *backend, void *stream, void **out);
    fk_status (*graph_replay)(fk_backend *backend, void *stream, void *graph);
    void (*graph_destroy)(fk_backend *backend, void *graph);

    /* Pushes everything out of the caches and leaves nothing in them that has still to be written back: writes, then reads at
     * least twice the last-level cache. */
    fk_status (*flush_cache)(fk_backend *backend, void *stream);

    fk_status (*shared_create)(fk_backend *backend, size_t bytes, fk_shared_memory *out);
    fk_status (*shared_open)(fk_backend *backend, int fd, size_t bytes, fk_shared_memory *out);
    void (*shared_close)(fk_backend *backend, fk_shared_memory *memory);
};

/* The backend of a device, opened on first use and shared by the process. FK_ERROR_MISSING says what is missing (no
 * plugin, no driver, no such device). */
fk_status fk_backend_get(fk_device device, fk_backend **out);
/* "cpu", "cuda", "cuda:1"; FK_ERROR_INVALID names the text. "" or NULL: cuda when one is there, else cpu. */
fk_status fk_device_parse(const char *text, fk_device *out);
/* "cpu" or "cuda:0" into buf; returns buf. */
const char *fk_device_format(fk_device device, char *buf, size_t size);

/* What a plugin exports under the name "fk_backend_create". */
typedef fk_status (*fk_backend_create_fn)(int device_id, fk_backend **out);

#ifdef __cplusplus
}
#endif
#endif
