/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax walks a contiguous tensor as [outer, n, inner], n along the chosen dim. */
#ifndef FK_OPS_SOFTMAX_DIM_H
#define FK_OPS_SOFTMAX_DIM_H

#include <fk/tensor.h>

typedef struct softmax_dim {
    int64_t outer, n, inner;
} softmax_dim;

/* `dim` may be negative; it has been checked to be one of t. A tensor without dims is one number. */
static inline softmax_dim softmax_dim_of(const fk_tensor *t, int64_t dim)
{
    softmax_dim s = {1, 1, 1};
    if (dim < 0) dim += t->ndim;
    for (int i = 0; i < t->ndim; i++) {
        if (i < dim) s.outer *= t->shape[i];
        else if (i == dim) s.n = t->shape[i];
        else s.inner *= t->shape[i];
    }
    return s;
}

#endif
