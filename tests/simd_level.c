/* SPDX-License-Identifier: Apache-2.0 */
/* core/simd.h at one instruction-set level: compiled once a level, with FKP_LEVEL set to its name. Each function returns
 * what it found, test_simd.c says what is allowed. */
#include "tests/simd_level.h"

#include <math.h>

#include "core/simd.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

static uint32_t bits_of(float f)
{
    return fk_bits_from_f32(f);
}

/* Largest relative error of fn over all floats of magnitude bits [first, last], every `step`th, both signs. */
static double largest_error(fkp_vf (*fn)(fkp_vf), double (*exact)(double), uint32_t first, uint32_t last, uint32_t step)
{
    double largest = 0;
    for (uint32_t bits = first; bits <= last - FKP_LANES * step; bits += FKP_LANES * step)
        for (uint32_t sign = 0; sign < 2; sign++) {
            float x[FKP_LANES], y[FKP_LANES];
            for (uint32_t i = 0; i < FKP_LANES; i++) x[i] = fk_f32_from_bits((bits + i * step) | sign << 31);
            fkp_v_store_f32(y, fn(fkp_v_load_f32(x)));
            for (int i = 0; i < FKP_LANES; i++) {
                double wanted = exact((double)x[i]), error = fabs((double)y[i] - wanted) / fabs(wanted);
                if (!(error <= largest)) largest = error; /* NaN shows too */
            }
        }
    return largest;
}

/* From the smallest normal number up to 87.33 the result is normal. */
static double exp_error(uint32_t step)
{
    return largest_error(fkp_v_exp, exp, 0x00800000u, bits_of(87.33f), step);
}

static double tanh_error(uint32_t step)
{
    return largest_error(fkp_v_tanh, tanh, 0x00800000u, bits_of(100.0f), step);
}

static float exp_of(float x)
{
    return fkp_s_exp(x);
}

static float tanh_of(float x)
{
    return fkp_v_tanh(fkp_v_set(x))[0];
}

static bool same_float(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b) && signbit(a) == signbit(b));
}

static bool same_half(uint16_t a, uint16_t b, bool is_nan)
{
    return a == b || (is_nan && (a & 0x8000) == (b & 0x8000) && (a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00);
}

/* Loads of every 16-bit pattern against core/dtype.h. */
static int64_t bad_loads(fk_dtype dtype)
{
    int64_t bad = 0;
    for (uint32_t first = 0; first < 65536; first += FKP_LANES) {
        uint16_t in[2 * FKP_LANES]; /* as large as float32 would need: gcc looks at that branch too */
        float out[FKP_LANES];
        for (int i = 0; i < FKP_LANES; i++) in[i] = (uint16_t)(first + (uint32_t)i);
        fkp_v_store_f32(out, fkp_v_load(in, dtype, 0));
        for (int i = 0; i < FKP_LANES; i++) {
            float wanted = dtype == FK_BF16 ? fk_f32_from_bf16(in[i]) : fk_f32_from_f16(in[i]);
            bad += !same_float(out[i], wanted) || !same_float(fkp_s_load(in, dtype, i), wanted);
        }
    }
    return bad;
}

/* Stores of every 16-bit pattern's value, of what lies halfway to the next one, and of the floats around both. */
static int64_t bad_stores(fk_dtype dtype)
{
    static const int32_t around[] = {-1, 0, 1};
    int64_t bad = 0;
    for (uint32_t pattern = 0; pattern < 65536; pattern++)
        for (int halfway = 0; halfway < 2; halfway++)
            for (int k = 0; k < 3; k++) {
                float value = dtype == FK_BF16 ? fk_f32_from_bf16((uint16_t)pattern) : fk_f32_from_f16((uint16_t)pattern);
                uint32_t half_step = dtype == FK_BF16 ? 0x8000u : 0x1000u;
                float x = fk_f32_from_bits(bits_of(value) + (uint32_t)halfway * half_step + (uint32_t)around[k]);
                uint16_t out[2 * FKP_LANES], one[2], wanted = dtype == FK_BF16 ? fk_bf16_from_f32(x) : fk_f16_from_f32(x);
                fkp_v_store(out, dtype, 0, fkp_v_set(x));
                fkp_s_store(one, dtype, 0, x);
                bad += !same_half(out[FKP_LANES - 1], wanted, isnan(x)) || !same_half(one[0], wanted, isnan(x));
            }
    return bad;
}

/* Shuffles on numbers that name their place. */
static bool shuffles_are_right(void)
{
    fkp_vf rows[FKP_LANES], a, b;
    for (int r = 0; r < FKP_LANES; r++)
        for (int i = 0; i < FKP_LANES; i++) rows[r][i] = (float)(r * FKP_LANES + i);
    a = rows[0];
    b = rows[1];
    fkp_vf low = FKP_V_ZIP_LOW(a, b), high = FKP_V_ZIP_HIGH(a, b), even = FKP_V_EVEN(a, b), odd = FKP_V_ODD(a, b);
    fkp_vf copies[FKP_LANES];
    for (int r = 0; r < FKP_LANES; r++) copies[r] = rows[r];
    fkp_vf sums = fkp_v_sums(copies);
    fkp_v_transpose(rows);
    bool right = fkp_v_sum(a) == (float)(FKP_LANES * (FKP_LANES - 1) / 2) && fkp_v_max(a) == (float)(FKP_LANES - 1) &&
                 fkp_v_max(-a) == 0;
    for (int i = 0; i < FKP_LANES; i++) {
        float pairs = (float)(i / 2 + (i % 2) * FKP_LANES);
        right = right && low[i] == pairs && high[i] == pairs + FKP_LANES / 2 && even[i] == (float)(2 * i) &&
                odd[i] == (float)(2 * i + 1) && sums[i] == (float)(FKP_LANES * FKP_LANES * i + FKP_LANES * (FKP_LANES - 1) / 2);
        for (int r = 0; r < FKP_LANES; r++) right = right && rows[r][i] == (float)(i * FKP_LANES + r);
    }
    return right;
}

const fkp_simd_level PASTE(fkp_simd, FKP_LEVEL) = {
    .lanes = FKP_LANES,
    .exp_error = exp_error,
    .tanh_error = tanh_error,
    .exp_of = exp_of,
    .tanh_of = tanh_of,
    .bad_loads = bad_loads,
    .bad_stores = bad_stores,
    .shuffles_are_right = shuffles_are_right,
};
