/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of at most 8 bits: one description per format, one rounding for those with a sign. */
#include "core/small_float.h"

#include <assert.h>
#include <math.h>

typedef struct format {
    int mantissa_bits, bias;
    uint8_t sign, largest; /* the sign bit; magnitude bits of the largest finite value */
    uint8_t overflow, nan; /* magnitude bits of what is larger, and of a NaN */
} format;

static const format e4m3 = {3, 7, 0x80, 0x7e, 0x7f, 0x7f};
static const format e5m2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7e};
static const format e2m1 = {1, 1, 0x08, 0x07, 0x07, 0x00};

static const format *format_of(fk_dtype dtype)
{
    assert(dtype == FK_F8_E4M3 || dtype == FK_F8_E5M2 || dtype == FK_F4_E2M1);
    return dtype == FK_F8_E4M3 ? &e4m3 : dtype == FK_F8_E5M2 ? &e5m2 : &e2m1;
}

float fkp_f32_from_small(uint8_t bits, fk_dtype dtype)
{
    if (dtype == FK_E8M0) return bits == 0xff ? NAN : ldexpf(1, bits - 127);
    const format *f = format_of(dtype);
    int magnitude = bits & (f->sign - 1), exponent = magnitude >> f->mantissa_bits;
    int mantissa = magnitude & ((1 << f->mantissa_bits) - 1);
    float value;
    if (magnitude > f->largest) value = f->overflow == f->nan || magnitude > f->overflow ? NAN : INFINITY;
    else if (exponent == 0) value = ldexpf((float)mantissa, 1 - f->bias - f->mantissa_bits);
    else value = ldexpf((float)(mantissa | 1 << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
    return copysignf(value, bits & f->sign ? -1.0f : 1.0f);
}

static uint8_t e8m0_from_f64(double value)
{
    if (!(value > 0) || isinf(value)) return 0xff;
    int exponent;
    double fraction = frexp(value, &exponent); /* value = fraction * 2^exponent, fraction in [1/2, 1) */
    int power = exponent - 1;
    /* ml_dtypes rounds everything above 2^-127 up to 2^-126, and only there. */
    if (fraction >= 0.75 || (power == -127 && fraction > 0.5)) power++;
    return (uint8_t)(power < -127 ? 0 : power > 127 ? 0xff : power + 127);
}

/* The magnitude is a count of steps, of the size that its exponent has; a count that rounds up to the next exponent has
 * the right bits by carry. */
uint8_t fkp_small_from_f64(double value, fk_dtype dtype)
{
    if (dtype == FK_E8M0) return e8m0_from_f64(value);
    const format *f = format_of(dtype);
    uint8_t sign = signbit(value) ? f->sign : 0;
    if (isnan(value)) return f->nan ? sign | f->nan : sign ^ f->sign;
    if (isinf(value)) return sign | f->overflow;
    if (value == 0) return sign;
    int exponent, least = 1 - f->bias;
    frexp(value, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    if (exponent > 30) return sign | f->overflow;
    double steps = ldexp(fabs(value), f->mantissa_bits - exponent), whole = floor(steps), rest = steps - whole;
    int count = (int)whole;
    if (rest > 0.5 || (rest == 0.5 && count % 2 != 0)) count++;
    int magnitude = count + ((exponent - least) << f->mantissa_bits);
    return sign | (uint8_t)(magnitude > f->largest ? f->overflow : magnitude);
}

int fkp_values_per_byte(fk_dtype dtype)
{
    return dtype == FK_INT2X4 ? 4 : dtype == FK_INT4X2 || dtype == FK_F4_E2M1 ? 2 : 1;
}

unsigned fkp_packed_bits(const void *data, fk_dtype dtype, int64_t i)
{
    int per_byte = fkp_values_per_byte(dtype), width = 8 / per_byte;
    return (unsigned)((const uint8_t *)data)[i / per_byte] >> (i % per_byte * width) & ((1u << width) - 1);
}

void fkp_set_packed_bits(void *data, fk_dtype dtype, int64_t i, unsigned bits)
{
    int per_byte = fkp_values_per_byte(dtype), width = 8 / per_byte, shift = (int)(i % per_byte) * width;
    uint8_t *byte = (uint8_t *)data + i / per_byte;
    unsigned mask = ((1u << width) - 1) << shift;
    *byte = (uint8_t)((*byte & ~mask) | (bits << shift & mask));
}

int fkp_load_packed_int(const void *data, fk_dtype dtype, int64_t i)
{
    int half = 1 << (8 / fkp_values_per_byte(dtype) - 1), bits = (int)fkp_packed_bits(data, dtype, i);
    return bits < half ? bits : bits - 2 * half;
}

void fkp_store_packed_int(void *data, fk_dtype dtype, int64_t i, int64_t value)
{
    fkp_set_packed_bits(data, dtype, i, (unsigned)(uint64_t)value);
}
