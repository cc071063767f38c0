/* SPDX-License-Identifier: Apache-2.0 */
/* Where a model's weights come from and where they go. A source answers by checkpoint name; the loader allocates on the
 * device, converts to the model's dtype and keeps the first error. */
#ifndef FK_RUNTIME_WEIGHTS_H
#define FK_RUNTIME_WEIGHTS_H

#include <fk/backend.h>
#include <fk/model.h>

typedef struct fk_weight_source {
    void *self;
    /* Shape of a tensor; false when there is none of that name. */
    bool (*find)(void *self, const char *name, int *ndim, int64_t *shape);
    /* Rows [begin, end) of the tensor seen as [rows, last dim] (a vector is one row), as float32; any thread. */
    fk_status (*read_rows)(void *self, const char *name, int64_t begin, int64_t end, float *out);
} fk_weight_source;

/* `source` NULL: seeded values from `seed` (core/seeded.h), made on the device. Borrowed. */
fk_status fk_weights_create(fk_backend *backend, fk_dtype dtype, const fk_weight_source *source, uint64_t seed,
                            fk_weights **out);
void fk_weights_destroy(fk_weights *weights);
/* Bytes of device memory in use. */
int64_t fk_weights_bytes(const fk_weights *weights);

#endif
