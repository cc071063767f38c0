/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors are small views: data, dtype, shape, strides, device. Copying one copies no data, and it owns nothing.
 * Shapes are row-major, outermost first; sizes and strides count elements. The device numbers are DLPack's, so a view
 * turns into a DLTensor without a copy (core/dlpack.h). */
#ifndef FK_TENSOR_H
#define FK_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. FK_NONE marks an absent tensor. Files and conversions know all; operators say which they take. */
typedef enum fk_dtype {
    FK_NONE = 0,
    FK_F64,
    FK_F32,
    FK_F16,
    FK_BF16,
    FK_F8_E4M3,
    FK_F8_E5M2,
    FK_F4_E2M1,
    FK_E8M0, /* a power of two: the scale of a block */
    FK_I64,
    FK_I32,
    FK_I8,
    FK_U8,
    FK_BOOL,
    FK_INT4X2, /* two signed 4-bit integers a byte, the low bits first */
    FK_INT2X4, /* four signed 2-bit integers a byte, the low bits first */
    FK_DTYPE_COUNT
} fk_dtype;

/* Bits per element; 0 for FK_NONE and unknown values. */
int fk_dtype_bits(fk_dtype dtype);
/* "f32", "bf16", ...; "none" for FK_NONE. The spelling of captures and the command line. */
const char *fk_dtype_name(fk_dtype dtype);
/* The dtype with that name, FK_NONE when there is none. */
fk_dtype fk_dtype_parse(const char *name);
bool fk_dtype_is_float(fk_dtype dtype);

typedef enum fk_device_type { FK_CPU = 1, FK_CUDA = 2 } fk_device_type;

typedef struct fk_device {
    int32_t type; /* fk_device_type */
    int32_t id;
} fk_device;

#define FK_MAX_NDIM 6

typedef struct fk_tensor {
    void *data; /* NULL only when absent or empty */
    fk_dtype dtype;
    int32_t ndim;
    fk_device device;
    int64_t shape[FK_MAX_NDIM];
    int64_t strides[FK_MAX_NDIM]; /* in elements */
} fk_tensor;

/* An optional argument that is not there. */
#define FK_ABSENT ((fk_tensor){0})

static inline bool fk_tensor_present(const fk_tensor *t)
{
    return t && t->dtype != FK_NONE;
}

/* A contiguous view of caller memory; borrows `data`. ndim at most FK_MAX_NDIM. */
fk_tensor fk_tensor_wrap(void *data, fk_dtype dtype, fk_device device, int ndim, const int64_t *shape);
int64_t fk_tensor_numel(const fk_tensor *t);
/* Bytes of the elements when contiguous. */
size_t fk_tensor_nbytes(const fk_tensor *t);
/* Bytes from the first to past the last element, strides counted: what must be mapped behind `data`. */
size_t fk_tensor_span_bytes(const fk_tensor *t);
/* True when the elements stand in row-major order without gaps (dims of size 1 may have any stride). */
bool fk_tensor_is_contiguous(const fk_tensor *t);
/* True when the last dimension is dense and the outer ones can be walked as rows of one constant stride: the layout
 * that row operators take. */
bool fk_tensor_has_rows(const fk_tensor *t);
/* View of elements [start, start + length) along `dim`. Out of range is a programmer's mistake (asserted). */
fk_tensor fk_tensor_slice(fk_tensor t, int dim, int64_t start, int64_t length);
/* The same elements under another shape; `t` must be contiguous and the element counts equal (asserted). */
fk_tensor fk_tensor_reshape(fk_tensor t, int ndim, const int64_t *shape);
/* Splits the last dimension in two, [..., a*b] to [..., a, b]; works on strided views too. */
fk_tensor fk_tensor_split_last(fk_tensor t, int64_t inner);
/* Pointer to the element at flat row-major position `index`, strides honoured; byte-sized dtypes only. */
void *fk_tensor_at(const fk_tensor *t, int64_t index);
bool fk_tensor_same_shape(const fk_tensor *a, const fk_tensor *b);
/* "bf16[8, 4096]" (with strides when they matter) into buf; returns buf. */
const char *fk_tensor_format(const fk_tensor *t, char *buf, size_t size);

/* Row view of [..., D]: the number of rows and D. A 1-D tensor is one row. Precondition: fk_tensor_has_rows. */
static inline void fk_rows_cols(const fk_tensor *t, int64_t *rows, int64_t *cols)
{
    int64_t r = 1;
    for (int i = 0; i + 1 < t->ndim; i++)
        r *= t->shape[i];
    *rows = r;
    *cols = t->ndim > 0 ? t->shape[t->ndim - 1] : 1;
}

/* Distance between rows in elements, for tensors with fk_tensor_has_rows. */
static inline int64_t fk_row_stride(const fk_tensor *t)
{
    for (int i = t->ndim - 2; i >= 0; i--)
        if (t->shape[i] > 1) return t->strides[i];
    return t->ndim > 0 ? t->shape[t->ndim - 1] : 1;
}

#define FK_PTR(T, tensor) ((T *)((tensor) ? (tensor)->data : NULL))

#ifdef __cplusplus
}
#endif
#endif
