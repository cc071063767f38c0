/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance of a backend on the device it is for: memory, copies, seeded values bit-equal to the CPU's (10^6 of them, and
 * indices above 2^32), events, cache flush, memory shared over a descriptor, description.
 *   check_backend [--device cpu|cuda[:n]]      last line: N passed, N failed, N skipped; exit 0, 1, or 3 without device */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fk/backend.h>

#include "core/dtype.h"
#include "core/seeded.h"

static int passed, failed;

static void verdict(const char *name, bool good, const char *detail)
{
    if (good) passed++;
    else failed++;
    printf("%s %s%s%s\n", good ? "ok    " : "FAILED", name, good ? "" : ": ", good ? "" : detail);
}

/* Host values of fill_seeded on `backend`. */
static fk_status device_values(fk_backend *backend, fk_dtype dtype, uint64_t key, fkp_seeded_scale scale, uint64_t first,
                               uint64_t count, void *host)
{
    size_t bytes = (size_t)count * (size_t)fk_dtype_bits(dtype) / 8;
    void *data;
    FK_TRY(backend->alloc(backend, bytes, &data));
    fk_status status = backend->fill_seeded(backend, NULL, data, dtype, key, scale.offset, scale.exponent, first, count);
    if (status == FK_OK) status = backend->copy(backend, NULL, host, data, bytes, FK_DEVICE_TO_HOST);
    if (status == FK_OK) status = backend->stream_synchronize(backend, NULL);
    backend->free(backend, data);
    return status;
}

static void check_seeded(fk_backend *backend)
{
    static const struct {
        const char *name;
        int ndim;
        int64_t shape[2];
        uint64_t first;
    } cases[] = {
        {"model.layers.0.mlp.down_proj.weight", 2, {4096, 14336}, 0},
        {"model.embed_tokens.weight", 2, {128256, 4096}, 0},
        {"model.norm.weight", 1, {4096}, 0},
        {"model.layers.3.self_attn.q_proj.bias", 1, {4096}, 0},
        {"lm_head.weight", 2, {1 << 20, 1 << 20}, (1ull << 32) - 1000},
        {"lm_head.weight", 2, {1 << 20, 1 << 20}, 3ull << 38},
    };
    const uint64_t count = 1000000;
    const fk_dtype dtypes[] = {FK_F32, FK_BF16, FK_F16};
    float *device = malloc(count * sizeof *device), *host = malloc(count * sizeof *host);
    for (size_t c = 0; device && host && c < sizeof cases / sizeof cases[0]; c++)
        for (int d = 0; d < 3; d++) {
            char name[160], detail[200] = "";
            uint64_t key = fkp_seeded_key(1234, cases[c].name);
            fkp_seeded_scale scale = fkp_seeded_scale_for(cases[c].name, cases[c].ndim, cases[c].shape);
            size_t size = (size_t)fk_dtype_bits(dtypes[d]) / 8;
            for (uint64_t i = 0; i < count; i++) {
                float value = fkp_seeded_value(key, cases[c].first + i, scale);
                fk_convert_from_f32((char *)host + i * size, dtypes[d], &value, 1);
            }
            bool good = device_values(backend, dtypes[d], key, scale, cases[c].first, count, device) == FK_OK;
            if (!good) snprintf(detail, sizeof detail, "%s", fk_error_message());
            for (uint64_t i = 0; good && i < count; i++) {
                if (memcmp((char *)host + i * size, (char *)device + i * size, size) == 0) continue;
                good = false;
                snprintf(detail, sizeof detail, "element %" PRIu64 ": %.9g on the device, %.9g expected",
                         cases[c].first + i, fk_load_element((char *)device + i * size, dtypes[d]),
                         fk_load_element((char *)host + i * size, dtypes[d]));
            }
            snprintf(name, sizeof name, "seeded %s %s from %" PRIu64, cases[c].name, fk_dtype_name(dtypes[d]), cases[c].first);
            verdict(name, good, detail);
        }
    free(device);
    free(host);
}

static void check_memory(fk_backend *backend)
{
    enum { bytes = 100003 };
    unsigned char *from = malloc(bytes), *to = malloc(bytes);
    void *a = NULL, *b = NULL;
    for (int i = 0; i < bytes; i++) from[i] = (unsigned char)(i * 7 + i / 251), to[i] = 0;
    bool good = backend->alloc(backend, bytes, &a) == FK_OK && backend->alloc(backend, bytes, &b) == FK_OK;
    verdict("alloc", good && (uintptr_t)a % 256 == 0 && (uintptr_t)b % 256 == 0, fk_error_message());
    good = good && backend->copy(backend, NULL, a, from, bytes, FK_HOST_TO_DEVICE) == FK_OK &&
           backend->copy(backend, NULL, b, a, bytes, FK_DEVICE_TO_DEVICE) == FK_OK &&
           backend->fill_bytes(backend, NULL, b, 0xa5, 10) == FK_OK &&
           backend->copy(backend, NULL, to, b, bytes, FK_DEVICE_TO_HOST) == FK_OK &&
           backend->stream_synchronize(backend, NULL) == FK_OK;
    memset(from, 0xa5, 10);
    verdict("copies and fill", good && memcmp(from, to, bytes) == 0, good ? "bytes differ" : fk_error_message());
    backend->free(backend, a);
    backend->free(backend, b);
    void *huge = NULL;
    fk_status status = backend->alloc(backend, (size_t)1 << 50, &huge);
    verdict("a petabyte is refused", status == FK_ERROR_MEMORY && strstr(fk_error_message(), "1125899906842624"),
            fk_error_message());
    free(from);
    free(to);
}

static void check_events(fk_backend *backend)
{
    void *stream = NULL, *start = NULL, *stop = NULL;
    double seconds = -1;
    bool good = backend->stream_create(backend, &stream) == FK_OK && backend->event_create(backend, &start) == FK_OK &&
                backend->event_create(backend, &stop) == FK_OK &&
                backend->event_record(backend, stream, start) == FK_OK && backend->flush_cache(backend, stream) == FK_OK &&
                backend->event_record(backend, stream, stop) == FK_OK &&
                backend->event_elapsed(backend, start, stop, &seconds) == FK_OK;
    verdict("events around a cache flush", good && seconds > 1e-6 && seconds < 10, fk_error_message());
    if (start) backend->event_destroy(backend, start);
    if (stop) backend->event_destroy(backend, stop);
    backend->stream_destroy(backend, stream);
}

static void check_shared(fk_backend *backend)
{
    fk_shared_memory mine = {.fd = -1}, other = {.fd = -1};
    unsigned char pattern[4096], back[4096] = {0};
    for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(i ^ i >> 5);
    bool good = backend->shared_create(backend, 3 * sizeof pattern, &mine) == FK_OK && mine.bytes >= 3 * sizeof pattern;
    int fd = good ? dup(mine.fd) : -1;
    good = good && backend->shared_open(backend, fd, mine.bytes, &other) == FK_OK && other.data != mine.data;
    good = good && backend->copy(backend, NULL, (char *)mine.data + 4096, pattern, sizeof pattern, FK_HOST_TO_DEVICE) == FK_OK &&
           backend->copy(backend, NULL, back, (char *)other.data + 4096, sizeof back, FK_DEVICE_TO_HOST) == FK_OK &&
           backend->stream_synchronize(backend, NULL) == FK_OK;
    verdict("shared memory through a descriptor", good && memcmp(pattern, back, sizeof back) == 0, fk_error_message());
    if (other.data) backend->shared_close(backend, &other);
    if (mine.data) backend->shared_close(backend, &mine);
}

int main(int argc, char **argv)
{
    const char *device_text = argc == 3 && strcmp(argv[1], "--device") == 0 ? argv[2] : argc == 1 ? "cpu" : NULL;
    fk_device device;
    fk_backend *backend;
    fk_device_info info;
    if (!device_text) {
        fprintf(stderr, "usage: check_backend [--device cpu|cuda[:n]]\n");
        return 2;
    }
    if (fk_device_parse(device_text, &device) != FK_OK || fk_backend_get(device, &backend) != FK_OK) {
        fprintf(stderr, "check_backend: %s\n", fk_error_message());
        return 3;
    }
    bool good = backend->describe(backend, &info) == FK_OK;
    verdict("description", good && info.name[0] && info.processors > 0 && info.total_bytes > 0 && info.last_level_cache_bytes > 0,
            fk_error_message());
    if (good) printf("       %s: %s\n", info.name, info.description);
    check_memory(backend);
    check_seeded(backend);
    check_events(backend);
    check_shared(backend);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
