/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of at most 8 bits and packed integers. Rules are those of ml_dtypes 0.6 (float8_e4m3fn, float8_e5m2,
 * float4_e2m1fn, float8_e8m0fnu, int4, int2): rounding goes to nearest, ties to even, and beyond the largest finite value
 * (after rounding)
 *     F8_E4M3  becomes NaN, which also stands for infinity
 *     F8_E5M2  becomes infinity
 *     F4_E2M1  becomes 6, infinity too; a NaN, which the type lacks, becomes zero with the opposite sign
 *     E8M0     becomes NaN, as zero and negative values do; ties go to the larger power of two, as does all between
 *              2^-127 and 2^-126; what lies below the smallest becomes the smallest, 2^-127
 * Sub-byte values fill a byte from its low bits up. */
#ifndef FK_CORE_SMALL_FLOAT_H
#define FK_CORE_SMALL_FLOAT_H

#include <fk/tensor.h>

/* FK_F8_E4M3, FK_F8_E5M2, FK_F4_E2M1 (low 4 bits) or FK_E8M0. */
float fkp_f32_from_small(uint8_t bits, fk_dtype dtype);
uint8_t fkp_small_from_f64(double value, fk_dtype dtype);

/* Values that one byte of the dtype holds: 4 of FK_INT2X4, 2 of FK_INT4X2 and FK_F4_E2M1, else 1. */
int fkp_values_per_byte(fk_dtype dtype);
/* The bits of value i of a sub-byte dtype, and setting them, which leaves the byte's other bits alone. */
unsigned fkp_packed_bits(const void *data, fk_dtype dtype, int64_t i);
void fkp_set_packed_bits(void *data, fk_dtype dtype, int64_t i, unsigned bits);
/* Value i of FK_INT4X2 or FK_INT2X4, two's complement; storing keeps the low bits. */
int fkp_load_packed_int(const void *data, fk_dtype dtype, int64_t i);
void fkp_store_packed_int(void *data, fk_dtype dtype, int64_t i, int64_t value);

#endif
