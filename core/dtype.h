/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of arrays and of single elements between dtypes, over the scalar ones of fk/half.h. */
#ifndef FK_CORE_DTYPE_H
#define FK_CORE_DTYPE_H

#include <fk/half.h>
#include <fk/tensor.h>

/* Converts n elements of a float dtype to float32 and back, by the rules of fk/half.h and core/small_float.h. Contiguous
 * memory, two elements a byte in F4_E2M1. */
void fk_convert_to_f32(float *dst, const void *src, fk_dtype dtype, int64_t n);
void fk_convert_from_f32(void *dst, fk_dtype dtype, const float *src, int64_t n);

/* One element of any numeric dtype of whole bytes as double, and back (floats round to nearest even; integers are assumed to fit). The
 * dtypes that references and comparisons read by the hundred million are read without a call. */
double fkp_load_any(const void *src, fk_dtype dtype);
void fk_store_element(void *dst, fk_dtype dtype, double value);

static inline double fk_load_element(const void *src, fk_dtype dtype)
{
    if (dtype == FK_F32) {
        float v;
        memcpy(&v, src, sizeof v);
        return v;
    }
    if (dtype == FK_BF16) {
        uint16_t v;
        memcpy(&v, src, sizeof v);
        return fk_f32_from_bf16(v);
    }
    return fkp_load_any(src, dtype);
}

/* Bytes of an element; dtypes of whole bytes only. */
static inline int64_t fkp_element_size(fk_dtype dtype)
{
    return dtype == FK_F32 ? 4 : fk_dtype_bits(dtype) / 8;
}

#endif
