/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack's tensor, as its C ABI defines it (dlpack.h 1.x), and the way from and to fk_tensor without a copy. Whoever
 * includes the original header first gets its types instead. */
#ifndef FK_DLPACK_H
#define FK_DLPACK_H

#include <fk/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef struct DLDevice {
    int32_t device_type; /* 1 CPU, 2 CUDA */
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code; /* 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 f8 e4m3fn, 12 f8 e5m2, 14 e8m0fnu, 17 f4 e2m1fn */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major and dense */
    uint64_t byte_offset;
} DLTensor;
#endif

static inline DLDataType fk_dtype_to_dlpack(fk_dtype dtype)
{
    DLDataType t = {0, 0, 1};
    switch (dtype) {
    case FK_F64: t.code = 2, t.bits = 64; break;
    case FK_F32: t.code = 2, t.bits = 32; break;
    case FK_F16: t.code = 2, t.bits = 16; break;
    case FK_BF16: t.code = 4, t.bits = 16; break;
    case FK_F8_E4M3: t.code = 10, t.bits = 8; break;
    case FK_F8_E5M2: t.code = 12, t.bits = 8; break;
    case FK_E8M0: t.code = 14, t.bits = 8; break;
    case FK_F4_E2M1: t.code = 17, t.bits = 4; break;
    case FK_I64: t.code = 0, t.bits = 64; break;
    case FK_I32: t.code = 0, t.bits = 32; break;
    case FK_I8: t.code = 0, t.bits = 8; break;
    case FK_BOOL: t.code = 6, t.bits = 8; break;
    default: t.code = 1, t.bits = 8; break; /* U8 and the packed integers */
    }
    return t;
}

/* FK_NONE for a type this project does not have. */
static inline fk_dtype fk_dtype_from_dlpack(DLDataType t)
{
    if (t.lanes != 1) return FK_NONE;
    switch (t.code << 8 | t.bits) {
    case 2 << 8 | 64: return FK_F64;
    case 2 << 8 | 32: return FK_F32;
    case 2 << 8 | 16: return FK_F16;
    case 4 << 8 | 16: return FK_BF16;
    case 10 << 8 | 8: return FK_F8_E4M3;
    case 12 << 8 | 8: return FK_F8_E5M2;
    case 14 << 8 | 8: return FK_E8M0;
    case 17 << 8 | 4: return FK_F4_E2M1;
    case 0 << 8 | 64: return FK_I64;
    case 0 << 8 | 32: return FK_I32;
    case 0 << 8 | 8: return FK_I8;
    case 1 << 8 | 8: return FK_U8;
    case 6 << 8 | 8: return FK_BOOL;
    default: return FK_NONE;
    }
}

/* Shape and strides of the DLTensor point into `t`, which must outlive it. */
static inline DLTensor fk_tensor_to_dlpack(fk_tensor *t)
{
    DLTensor d;
    d.data = t->data;
    d.device.device_type = (__typeof__(d.device.device_type))t->device.type;
    d.device.device_id = t->device.id;
    d.ndim = t->ndim;
    d.dtype = fk_dtype_to_dlpack(t->dtype);
    d.shape = t->shape;
    d.strides = t->strides;
    d.byte_offset = 0;
    return d;
}

/* False when the tensor has too many dims or a dtype unknown here. */
static inline bool fk_tensor_from_dlpack(const DLTensor *d, fk_tensor *t)
{
    int64_t dense = 1;
    if (d->ndim < 0 || d->ndim > FK_MAX_NDIM) return false;
    t->data = (char *)d->data + d->byte_offset;
    t->dtype = fk_dtype_from_dlpack(d->dtype);
    t->ndim = d->ndim;
    t->device.type = (int32_t)d->device.device_type;
    t->device.id = d->device.device_id;
    for (int i = d->ndim - 1; i >= 0; i--) {
        t->shape[i] = d->shape[i];
        t->strides[i] = d->strides ? d->strides[i] : dense;
        dense *= d->shape[i];
    }
    return t->dtype != FK_NONE;
}

#ifdef __cplusplus
}
#endif
#endif
