/* SPDX-License-Identifier: Apache-2.0 */
/* Packed keys or values seen as a cache with pages of one token; C and CUDA. */
#ifndef FK_OPS_VARLEN_PAGES_H
#define FK_OPS_VARLEN_PAGES_H

#include <fk/tensor.h>

/* [U, K, E] as [U, 1, K, E]. */
static inline fk_tensor varlen_pages(const fk_tensor *t)
{
    fk_tensor pages = *t;
    pages.ndim = 4;
    for (int i = 3; i > 1; i--) {
        pages.shape[i] = t->shape[i - 1];
        pages.strides[i] = t->strides[i - 1];
    }
    pages.shape[1] = 1;
    pages.strides[1] = t->strides[0];
    return pages;
}

#endif
