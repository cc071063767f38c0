/* SPDX-License-Identifier: Apache-2.0 */
/* Where the rows of a tensor lie: one distance apart, or, in three dims, one distance apart in each of two dims, as the heads of
 * tokens do that are a part of a wider product. C and CUDA. */
#ifndef FK_CORE_ROW_PLACE_H
#define FK_CORE_ROW_PLACE_H

#include <fk/tensor.h>

/* Row r begins r / inner * outer_stride + r % inner * inner_stride elements after the data. */
typedef struct fkp_row_place {
    int64_t inner; /* 1: rows lie one distance apart */
    int64_t outer_stride, inner_stride;
} fkp_row_place;

/* Places of the rows of two tensors of one shape, with the same `inner`. False: rows lie otherwise, or are no rows. */
static inline bool fkp_row_places(const fk_tensor *a, const fk_tensor *b, fkp_row_place *of_a, fkp_row_place *of_b)
{
    const fk_tensor *tensors[2] = {a, b};
    fkp_row_place *places[2] = {of_a, of_b};
    bool even = fk_tensor_has_rows(a) && fk_tensor_has_rows(b);
    for (int i = 0; i < 2; i++) {
        const fk_tensor *t = tensors[i];
        if (even) {
            places[i]->inner = 1;
            places[i]->outer_stride = fk_row_stride(t);
            places[i]->inner_stride = 0;
        } else {
            if (t->ndim != 3 || (t->shape[2] != 1 && t->strides[2] != 1)) return false;
            places[i]->inner = t->shape[1];
            places[i]->outer_stride = t->strides[0];
            places[i]->inner_stride = t->strides[1];
        }
    }
    return true;
}

static inline int64_t fkp_row_at(const fkp_row_place *place, int64_t r)
{
    return r / place->inner * place->outer_stride + r % place->inner * place->inner_stride;
}

#endif
