/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sizes of element types, and conversions of arrays. */
#include "core/dtype.h"
#include "core/small_float.h"

static const struct {
    const char *name;
    int bits;
    bool is_float;
} dtypes[FK_DTYPE_COUNT] = {
    [FK_NONE] = {"none", 0, false},         [FK_F64] = {"f64", 64, true},
    [FK_F32] = {"f32", 32, true},           [FK_F16] = {"f16", 16, true},
    [FK_BF16] = {"bf16", 16, true},         [FK_F8_E4M3] = {"f8_e4m3", 8, true},
    [FK_F8_E5M2] = {"f8_e5m2", 8, true},    [FK_F4_E2M1] = {"f4_e2m1", 4, true},
    [FK_E8M0] = {"e8m0", 8, true},          [FK_I64] = {"i64", 64, false},
    [FK_I32] = {"i32", 32, false},          [FK_I8] = {"i8", 8, false},
    [FK_U8] = {"u8", 8, false},             [FK_BOOL] = {"bool", 8, false},
    [FK_INT4X2] = {"int4x2", 8, false},     [FK_INT2X4] = {"int2x4", 8, false},
};

static bool known(fk_dtype dtype)
{
    return (unsigned)dtype < FK_DTYPE_COUNT;
}

int fk_dtype_bits(fk_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].bits : 0;
}

const char *fk_dtype_name(fk_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].name : "unknown";
}

bool fk_dtype_is_float(fk_dtype dtype)
{
    return known(dtype) && dtypes[dtype].is_float;
}

fk_dtype fk_dtype_parse(const char *name)
{
    for (int i = 1; i < FK_DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0) return (fk_dtype)i;
    return FK_NONE;
}

void fk_convert_to_f32(float *dst, const void *src, fk_dtype dtype, int64_t n)
{
    switch (dtype) {
    case FK_F32: memcpy(dst, src, (size_t)n * sizeof *dst); break;
    case FK_F64: for (int64_t i = 0; i < n; i++) dst[i] = (float)((const double *)src)[i]; break;
    case FK_F16: for (int64_t i = 0; i < n; i++) dst[i] = fk_f32_from_f16(((const uint16_t *)src)[i]); break;
    case FK_BF16: for (int64_t i = 0; i < n; i++) dst[i] = fk_f32_from_bf16(((const uint16_t *)src)[i]); break;
    case FK_F4_E2M1: for (int64_t i = 0; i < n; i++) dst[i] = fkp_f32_from_small((uint8_t)fkp_packed_bits(src, dtype, i), dtype); break;
    default: for (int64_t i = 0; i < n; i++) dst[i] = (float)fk_load_element((const char *)src + i * (fk_dtype_bits(dtype) / 8), dtype);
    }
}

void fk_convert_from_f32(void *dst, fk_dtype dtype, const float *src, int64_t n)
{
    switch (dtype) {
    case FK_F32: memcpy(dst, src, (size_t)n * sizeof *src); break;
    case FK_F64: for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = src[i]; break;
    case FK_F16: for (int64_t i = 0; i < n; i++) ((uint16_t *)dst)[i] = fk_f16_from_f32(src[i]); break;
    case FK_BF16: for (int64_t i = 0; i < n; i++) ((uint16_t *)dst)[i] = fk_bf16_from_f32(src[i]); break;
    case FK_F4_E2M1: for (int64_t i = 0; i < n; i++) fkp_set_packed_bits(dst, dtype, i, fkp_small_from_f64((double)src[i], dtype)); break;
    default: for (int64_t i = 0; i < n; i++) fk_store_element((char *)dst + i * (fk_dtype_bits(dtype) / 8), dtype, src[i]);
    }
}

double fkp_load_any(const void *src, fk_dtype dtype)
{
    switch (dtype) {
    case FK_F64: { double v; memcpy(&v, src, sizeof v); return v; }
    case FK_F32: { float v; memcpy(&v, src, sizeof v); return v; }
    case FK_F16: { uint16_t v; memcpy(&v, src, sizeof v); return fk_f32_from_f16(v); }
    case FK_BF16: { uint16_t v; memcpy(&v, src, sizeof v); return fk_f32_from_bf16(v); }
    case FK_F8_E4M3:
    case FK_F8_E5M2:
    case FK_E8M0: return (double)fkp_f32_from_small(*(const uint8_t *)src, dtype);
    case FK_I64: { int64_t v; memcpy(&v, src, sizeof v); return (double)v; }
    case FK_I32: { int32_t v; memcpy(&v, src, sizeof v); return v; }
    case FK_I8: return *(const int8_t *)src;
    case FK_U8:
    case FK_BOOL: return *(const uint8_t *)src;
    default: return 0;
    }
}

/* double to bfloat16 or float16 through float32 would round twice: round to odd first, which the second rounding undoes. */
static float f32_round_to_odd(double value)
{
    float f = (float)value;
    if ((double)f == value || f - f != 0) return f; /* exact, infinite or NaN */
    uint32_t bits = fk_bits_from_f32(f);
    if (bits & 1) return f;
    double error = value - (double)f;
    bool away = (error > 0) == (value > 0); /* the true value is larger in magnitude than f */
    return fk_f32_from_bits(away ? bits + 1 : bits - 1);
}

void fk_store_element(void *dst, fk_dtype dtype, double value)
{
    switch (dtype) {
    case FK_F64: memcpy(dst, &value, sizeof value); break;
    case FK_F32: { float v = (float)value; memcpy(dst, &v, sizeof v); break; }
    case FK_F16: { uint16_t v = fk_f16_from_f32(f32_round_to_odd(value)); memcpy(dst, &v, sizeof v); break; }
    case FK_BF16: { uint16_t v = fk_bf16_from_f32(f32_round_to_odd(value)); memcpy(dst, &v, sizeof v); break; }
    case FK_F8_E4M3:
    case FK_F8_E5M2:
    case FK_E8M0: *(uint8_t *)dst = fkp_small_from_f64(value, dtype); break;
    case FK_I64: { int64_t v = (int64_t)value; memcpy(dst, &v, sizeof v); break; }
    case FK_I32: { int32_t v = (int32_t)value; memcpy(dst, &v, sizeof v); break; }
    case FK_I8: *(int8_t *)dst = (int8_t)value; break;
    case FK_U8: *(uint8_t *)dst = (uint8_t)value; break;
    case FK_BOOL: *(uint8_t *)dst = value != 0; break;
    default: break;
    }
}
