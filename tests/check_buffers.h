/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a check on any device: each in an allocation of its own between guard bands, in a chosen layout. Only
 * fk_backend touches the device. */
#ifndef FK_TESTS_CHECK_BUFFERS_H
#define FK_TESTS_CHECK_BUFFERS_H

#include <fk/backend.h>

/* Where rows stand. PADDED keeps rows at multiples of 16 bytes when their length is one; ODD puts neither the first row
 * nor the others at such a place. */
typedef enum layout { LAYOUT_DENSE, LAYOUT_PADDED, LAYOUT_ODD } layout;

typedef struct guarded {
    fk_backend *backend;
    void *stream; /* that the checked call runs in */
    void *device;
    size_t bytes;
    unsigned char *before, *after; /* images of the allocation: as uploaded, as found after the call */
    fk_tensor view;                /* on the device */
} guarded;

/* Uploads the values of a contiguous host tensor. padded_dim: the dimension whose stride gets the padding (not the last).
 * Gaps and guards are NaN in float tensors, so that reading them shows. poison: the elements too (an output). */
fk_status guarded_create(fk_backend *backend, void *stream, const fk_tensor *host, layout layout, int padded_dim, bool poison,
                         guarded *out);
void guarded_destroy(guarded *g);
fk_status guarded_download(guarded *g);
/* The tensor inside the image `before` or `after`, on the host. */
fk_tensor guarded_image(const guarded *g, unsigned char *image);
/* First byte that changed outside the elements (or anywhere, when elements must stay too); -1 when none did. Relative to
 * the first element. */
bool guarded_intact(const guarded *g, bool elements_too, long long *first_changed);

#endif
