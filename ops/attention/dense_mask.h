/* SPDX-License-Identifier: Apache-2.0 */
/* The mask of dense attention as every (batch, head, query, key) sees it: dims of size 1 get stride 0; C and CUDA. */
#ifndef FK_OPS_DENSE_MASK_H
#define FK_OPS_DENSE_MASK_H

#include <fk/ops.h>

/* The mask as [B, H, T, U]. */
static inline fk_tensor dense_mask(const fk_dense_attention_args *a)
{
    fk_tensor mask = *a->attn_mask;
    for (int i = 0; i < 3; i++) {
        if (mask.shape[i] == 1) mask.strides[i] = 0;
        mask.shape[i] = a->query->shape[i];
    }
    return mask;
}

#endif
