/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded tensors. */
#include "check_buffers.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 512u
#define FLOAT_PATTERN 0xff /* all bits set: NaN in every float type */
#define OTHER_PATTERN 0x5b

static int pattern(fk_dtype dtype)
{
    return fk_dtype_is_float(dtype) ? FLOAT_PATTERN : OTHER_PATTERN;
}

static size_t element_bytes(const fk_tensor *t)
{
    return (size_t)fk_dtype_bits(t->dtype) / 8;
}

/* Bytes from the start of the allocation to the first element. */
static size_t lead(const guarded *g)
{
    return (size_t)((unsigned char *)g->view.data - (unsigned char *)g->device);
}

fk_tensor guarded_image(const guarded *g, unsigned char *image)
{
    fk_tensor t = g->view;
    t.data = image + lead(g);
    t.device = (fk_device){FK_CPU, 0};
    return t;
}

fk_status guarded_create(fk_backend *backend, void *stream, const fk_tensor *host, layout layout, int padded_dim, bool poison,
                         guarded *out)
{
    *out = (guarded){.backend = backend, .stream = stream};
    fk_tensor t = *host;
    size_t size = element_bytes(&t), shift = layout == LAYOUT_ODD ? size : 0;
    if (layout != LAYOUT_DENSE && padded_dim >= 0) {
        int64_t pad = layout == LAYOUT_ODD ? 1 : (int64_t)(16 / size);
        int64_t stride = t.strides[padded_dim] + pad;
        for (int i = padded_dim; i >= 0; i--) {
            t.strides[i] = stride;
            stride *= t.shape[i];
        }
    }
    size_t span = fk_tensor_span_bytes(&t);
    out->bytes = 2 * GUARD_BYTES + shift + span;
    out->before = malloc(out->bytes);
    out->after = malloc(out->bytes);
    if (!out->before || !out->after) return fk_fail(FK_ERROR_MEMORY, "out of memory for an image of %zu bytes", out->bytes);
    FK_TRY(backend->alloc(backend, out->bytes, &out->device));
    out->view = t;
    out->view.device = backend->device;
    out->view.data = (unsigned char *)out->device + GUARD_BYTES + shift;
    memset(out->before, pattern(t.dtype), out->bytes);
    fk_tensor image = guarded_image(out, out->before);
    int64_t n = poison ? 0 : fk_tensor_numel(host);
    for (int64_t i = 0; i < n; i++) memcpy(fk_tensor_at(&image, i), (const char *)host->data + (size_t)i * size, size);
    return backend->copy(backend, stream, out->device, out->before, out->bytes, FK_HOST_TO_DEVICE);
}

void guarded_destroy(guarded *g)
{
    if (g->device) g->backend->free(g->backend, g->device);
    free(g->before);
    free(g->after);
    *g = (guarded){0};
}

fk_status guarded_download(guarded *g)
{
    FK_TRY(g->backend->copy(g->backend, g->stream, g->after, g->device, g->bytes, FK_DEVICE_TO_HOST));
    return g->backend->stream_synchronize(g->backend, g->stream);
}

bool guarded_intact(const guarded *g, bool elements_too, long long *first_changed)
{
    *first_changed = -1;
    if (memcmp(g->before, g->after, g->bytes) == 0) return true;
    unsigned char *expected = malloc(g->bytes);
    if (!expected) return false;
    memcpy(expected, g->before, g->bytes);
    if (!elements_too) { /* whatever the elements became is right here */
        fk_tensor from = guarded_image(g, g->after), to = guarded_image(g, expected);
        for (int64_t i = 0, n = fk_tensor_numel(&from); i < n; i++)
            memcpy(fk_tensor_at(&to, i), fk_tensor_at(&from, i), element_bytes(&from));
    }
    bool intact = true;
    for (size_t i = 0; i < g->bytes && intact; i++)
        if (expected[i] != g->after[i]) {
            intact = false;
            *first_changed = (long long)i - (long long)lead(g);
        }
    free(expected);
    return intact;
}
