/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of arrays and of single elements between dtypes, over the scalar ones of fk/half.h. */
#ifndef FK_CORE_DTYPE_H
#define FK_CORE_DTYPE_H

#include <fk/half.h>
#include <fk/tensor.h>

/* Converts n elements of a float dtype (F64, F32, F16, BF16) to float32 and back. Contiguous memory. */
void fk_convert_to_f32(float *dst, const void *src, fk_dtype dtype, int64_t n);
void fk_convert_from_f32(void *dst, fk_dtype dtype, const float *src, int64_t n);

/* One element of any numeric dtype as double, and back (floats round to nearest even; integers are assumed to fit). */
double fk_load_element(const void *src, fk_dtype dtype);
void fk_store_element(void *dst, fk_dtype dtype, double value);

#endif
