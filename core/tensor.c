/* SPDX-License-Identifier: Apache-2.0 */
/* Views: strides, slices, reshapes, printing. */
#include <fk/tensor.h>

#include <assert.h>
#include <stdio.h>

fk_tensor fk_tensor_wrap(void *data, fk_dtype dtype, fk_device device, int ndim, const int64_t *shape)
{
    assert(ndim >= 0 && ndim <= FK_MAX_NDIM);
    fk_tensor t = {.data = data, .dtype = dtype, .ndim = ndim, .device = device};
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        assert(shape[i] >= 0);
        t.shape[i] = shape[i];
        t.strides[i] = stride;
        stride *= shape[i];
    }
    return t;
}

int64_t fk_tensor_numel(const fk_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

static size_t bytes_of(fk_dtype dtype, int64_t elements)
{
    return ((size_t)elements * (size_t)fk_dtype_bits(dtype) + 7) / 8;
}

size_t fk_tensor_nbytes(const fk_tensor *t)
{
    return bytes_of(t->dtype, fk_tensor_numel(t));
}

size_t fk_tensor_span_bytes(const fk_tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] == 0) return 0;
        last += (t->shape[i] - 1) * t->strides[i];
    }
    return bytes_of(t->dtype, last + 1);
}

bool fk_tensor_is_contiguous(const fk_tensor *t)
{
    int64_t stride = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] == 0) return true;
        if (t->shape[i] != 1 && t->strides[i] != stride) return false;
        stride *= t->shape[i];
    }
    return true;
}

bool fk_tensor_has_rows(const fk_tensor *t)
{
    if (fk_tensor_numel(t) == 0) return true;
    if (t->ndim == 0) return true;
    int last = t->ndim - 1;
    if (t->shape[last] != 1 && t->strides[last] != 1) return false;
    int64_t expected = 0; /* stride of the next dim outwards; 0 until the innermost one with more than one row */
    for (int i = last - 1; i >= 0; i--) {
        if (t->shape[i] == 1) continue;
        if (expected && t->strides[i] != expected) return false;
        expected = t->strides[i] * t->shape[i];
    }
    return true;
}

fk_tensor fk_tensor_slice(fk_tensor t, int dim, int64_t start, int64_t length)
{
    if (!fk_tensor_present(&t)) return t; /* poison passes through */
    assert(dim >= 0 && dim < t.ndim);
    assert(start >= 0 && length >= 0 && start + length <= t.shape[dim]);
    int64_t offset = start * t.strides[dim];
    if (t.data) t.data = (char *)t.data + bytes_of(t.dtype, offset);
    t.shape[dim] = length;
    return t;
}

fk_tensor fk_tensor_reshape(fk_tensor t, int ndim, const int64_t *shape)
{
    if (!fk_tensor_present(&t)) return t;
    assert(fk_tensor_is_contiguous(&t));
    fk_tensor r = fk_tensor_wrap(t.data, t.dtype, t.device, ndim, shape);
    assert(fk_tensor_numel(&r) == fk_tensor_numel(&t));
    return r;
}

fk_tensor fk_tensor_split_last(fk_tensor t, int64_t inner)
{
    if (!fk_tensor_present(&t)) return t;
    assert(t.ndim >= 1 && t.ndim < FK_MAX_NDIM && inner > 0);
    int last = t.ndim - 1;
    assert(t.shape[last] % inner == 0);
    t.shape[last + 1] = inner;
    t.strides[last + 1] = t.strides[last];
    t.shape[last] /= inner;
    t.strides[last] *= inner;
    t.ndim++;
    return t;
}

void *fk_tensor_at(const fk_tensor *t, int64_t index)
{
    int64_t offset = 0;
    for (int i = t->ndim - 1; i >= 0; i--) {
        offset += index % t->shape[i] * t->strides[i];
        index /= t->shape[i];
    }
    assert(index == 0);
    return (char *)t->data + bytes_of(t->dtype, offset);
}

bool fk_tensor_same_shape(const fk_tensor *a, const fk_tensor *b)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

const char *fk_tensor_format(const fk_tensor *t, char *buf, size_t size)
{
    if (!fk_tensor_present(t)) {
        snprintf(buf, size, "absent");
        return buf;
    }
    int n = snprintf(buf, size, "%s[", fk_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim && n >= 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    if (n >= 0 && (size_t)n < size) n += snprintf(buf + n, size - (size_t)n, "]");
    if (!fk_tensor_is_contiguous(t)) {
        if (n >= 0 && (size_t)n < size) n += snprintf(buf + n, size - (size_t)n, " strides (");
        for (int i = 0; i < t->ndim && n >= 0 && (size_t)n < size; i++)
            n += snprintf(buf + n, size - (size_t)n, "%s%lld", i ? ", " : "", (long long)t->strides[i]);
        if (n >= 0 && (size_t)n < size) snprintf(buf + n, size - (size_t)n, ")");
    }
    return buf;
}
