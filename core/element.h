/* SPDX-License-Identifier: Apache-2.0 */
/* Single elements by index, strides honoured, floats widened to double: how references read and write tensors, so that a
 * loop looks like its formula. Integers are read exactly. */
#ifndef FK_CORE_ELEMENT_H
#define FK_CORE_ELEMENT_H

#include <assert.h>

#include "core/dtype.h"

static inline void *fkp_offset(const fk_tensor *t, int64_t elements)
{
    return (char *)t->data + elements * fkp_element_size(t->dtype);
}

/* Element i in the order of the indices, and what it becomes. */
static inline double fkp_element(const fk_tensor *t, int64_t i)
{
    return fk_load_element(fk_tensor_at(t, i), t->dtype);
}

static inline void fkp_set_element(const fk_tensor *t, int64_t i, double value)
{
    fk_store_element(fk_tensor_at(t, i), t->dtype, value);
}

static inline void *fkp_at1(const fk_tensor *t, int64_t i)
{
    assert(t->ndim == 1 && i >= 0 && i < t->shape[0]);
    return fkp_offset(t, i * t->strides[0]);
}

static inline void *fkp_at2(const fk_tensor *t, int64_t i, int64_t j)
{
    assert(t->ndim == 2 && i >= 0 && i < t->shape[0] && j >= 0 && j < t->shape[1]);
    return fkp_offset(t, i * t->strides[0] + j * t->strides[1]);
}

static inline void *fkp_at3(const fk_tensor *t, int64_t i, int64_t j, int64_t k)
{
    assert(t->ndim == 3 && i >= 0 && i < t->shape[0] && j >= 0 && j < t->shape[1] && k >= 0 && k < t->shape[2]);
    return fkp_offset(t, i * t->strides[0] + j * t->strides[1] + k * t->strides[2]);
}

static inline void *fkp_at4(const fk_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l)
{
    assert(t->ndim == 4 && i >= 0 && i < t->shape[0] && j >= 0 && j < t->shape[1] && k >= 0 && k < t->shape[2] &&
           l >= 0 && l < t->shape[3]);
    return fkp_offset(t, i * t->strides[0] + j * t->strides[1] + k * t->strides[2] + l * t->strides[3]);
}

/* Element j of a row whose first element is `row`, in the last dim of `t`. */
static inline double fkp_in_row(const fk_tensor *t, const void *row, int64_t j)
{
    return fk_load_element((const char *)row + j * t->strides[t->ndim - 1] * fkp_element_size(t->dtype), t->dtype);
}

/* Sum of the products of two rows of n elements, in double. Dense float32 and float64, the loops that references spend
 * their time in, go to four partial sums. */
static inline double fkp_dot(const fk_tensor *x, const void *x_row, const fk_tensor *w, const void *w_row, int64_t n)
{
    double sums[4] = {0};
    int64_t i = 0;
    bool dense = x->dtype == w->dtype && x->strides[x->ndim - 1] == 1 && w->strides[w->ndim - 1] == 1;
    if (dense && x->dtype == FK_F64)
        for (const double *a = x_row, *b = w_row; i + 4 <= n; i += 4)
            for (int k = 0; k < 4; k++) sums[k] += a[i + k] * b[i + k];
    if (dense && x->dtype == FK_F32)
        for (const char *a = x_row, *b = w_row; i + 4 <= n; i += 4, a += 16, b += 16)
            for (int k = 0; k < 4; k++) sums[k] += fk_load_element(a + 4 * k, FK_F32) * fk_load_element(b + 4 * k, FK_F32);
    for (; i < n; i++) sums[0] += fkp_in_row(x, x_row, i) * fkp_in_row(w, w_row, i);
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/* An element of an I32 or I64 tensor. */
static inline int64_t fkp_int(const fk_tensor *t, const void *element)
{
    if (t->dtype == FK_I32) {
        int32_t v;
        memcpy(&v, element, sizeof v);
        return v;
    }
    int64_t v;
    assert(t->dtype == FK_I64);
    memcpy(&v, element, sizeof v);
    return v;
}

static inline int64_t fkp_int1(const fk_tensor *t, int64_t i)
{
    return fkp_int(t, fkp_at1(t, i));
}

static inline void fkp_set_int(const fk_tensor *t, void *element, int64_t value)
{
    if (t->dtype == FK_I32) {
        int32_t v = (int32_t)value;
        memcpy(element, &v, sizeof v);
    } else {
        assert(t->dtype == FK_I64);
        memcpy(element, &value, sizeof value);
    }
}

#endif
