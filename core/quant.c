/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF block types: sizes of all, dequantisation of those in use. Blocks are unaligned bytes, little-endian.
 */
#include "core/quant.h"

#include <assert.h>
#include <string.h>

#include "core/dtype.h"

static float half_at(const uint8_t *bytes)
{
    return fk_f32_from_f16((uint16_t)(bytes[0] | bytes[1] << 8));
}

/* ---- plain types: any number of elements ---- */

static void from_f32(const uint8_t *in, int64_t n, float *out)
{
    memcpy(out, in, (size_t)n * sizeof *out);
}

static void from_f16(const uint8_t *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = half_at(in + 2 * i);
}

static void from_bf16(const uint8_t *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = fk_f32_from_bf16((uint16_t)(in[2 * i] | in[2 * i + 1] << 8));
}

/* ---- blocks of n = 32: low nibbles hold elements 0 to 15, high nibbles 16 to 31 ---- */

static void from_q4_0(const uint8_t *in, int64_t n, float *out)
{
    float d = half_at(in);
    const uint8_t *nibbles = in + 2;
    for (int64_t i = 0; i < n / 2; i++) {
        out[i] = d * (float)((nibbles[i] & 15) - 8);
        out[i + n / 2] = d * (float)((nibbles[i] >> 4) - 8);
    }
}

static void from_q4_1(const uint8_t *in, int64_t n, float *out)
{
    float d = half_at(in), m = half_at(in + 2);
    const uint8_t *nibbles = in + 4;
    for (int64_t i = 0; i < n / 2; i++) {
        out[i] = d * (float)(nibbles[i] & 15) + m;
        out[i + n / 2] = d * (float)(nibbles[i] >> 4) + m;
    }
}

/* Element i of a 5-bit block: its nibble, and bit i of the 32 high bits as bit 4. */
static int five_bits(const uint8_t *high, const uint8_t *nibbles, int64_t i)
{
    int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    return low | (high[i / 8] >> (i % 8) & 1) << 4;
}

static void from_q5_0(const uint8_t *in, int64_t n, float *out)
{
    float d = half_at(in);
    for (int64_t i = 0; i < n; i++) out[i] = d * (float)(five_bits(in + 2, in + 6, i) - 16);
}

static void from_q5_1(const uint8_t *in, int64_t n, float *out)
{
    float d = half_at(in), m = half_at(in + 2);
    for (int64_t i = 0; i < n; i++) out[i] = d * (float)five_bits(in + 4, in + 8, i) + m;
}

static void from_q8_0(const uint8_t *in, int64_t n, float *out)
{
    float d = half_at(in);
    for (int64_t i = 0; i < n; i++) out[i] = (float)(int8_t)in[2 + i] * d;
}

/* ---- super-blocks of n = 256 ---- */

/* The 6-bit scale and minimum of sub-block g of 8, from 12 bytes: bytes 0-3 and 4-7 hold those of sub-blocks 0 to 3 in
 * their low 6 bits, and in their top 2 the top bits of sub-blocks 4 to 7, whose low 4 bits are the nibbles of bytes 8-11. */
static void scale_and_min(const uint8_t packed[12], int g, int *scale, int *min)
{
    if (g < 4) {
        *scale = packed[g] & 63;
        *min = packed[4 + g] & 63;
    } else {
        *scale = (packed[4 + g] & 15) | (packed[g - 4] >> 6) << 4;
        *min = packed[4 + g] >> 4 | (packed[g] >> 6) << 4;
    }
}

/* Q4_K and Q5_K: half d, half dmin, the 12 bytes, with `high` (NULL in Q4_K) a bit 4 for each element, 128 bytes of
 * nibbles. Sub-blocks 2k and 2k + 1 are the low and high nibbles of bytes 32k to 32k + 31; bit g of high[i] belongs to
 * element i of sub-block g. */
static void from_k(const uint8_t *in, const uint8_t *high, const uint8_t *nibbles, int64_t n, float *out)
{
    float d = half_at(in), dmin = half_at(in + 2);
    for (int g = 0; g < n / 32; g++) {
        int scale, min;
        scale_and_min(in + 4, g, &scale, &min);
        float step = d * (float)scale, offset = dmin * (float)min;
        for (int i = 0; i < 32; i++) {
            int q = nibbles[g / 2 * 32 + i] >> (g % 2 * 4) & 15;
            if (high) q |= (high[i] >> g & 1) << 4;
            out[32 * g + i] = step * (float)q - offset;
        }
    }
}

static void from_q4_k(const uint8_t *in, int64_t n, float *out)
{
    from_k(in, NULL, in + 16, n, out);
}

static void from_q5_k(const uint8_t *in, int64_t n, float *out)
{
    from_k(in, in + 16, in + 48, n, out);
}

/* 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, half d. Each half of 128 elements has 64 and 32
 * of those bytes: its quarter k takes the nibbles of bytes 32 (k % 2) on, low ones first, and bit pair k of all 32. */
static void from_q6_k(const uint8_t *in, int64_t n, float *out)
{
    const uint8_t *low = in, *high = in + 128, *scales = in + 192;
    float d = half_at(in + 208);
    for (int64_t e = 0; e < n; e++) {
        int64_t half = e / 128, k = e / 32 % 4, i = e % 32;
        int nibble = low[64 * half + 32 * (k % 2) + i] >> (k / 2 * 4) & 15;
        int q = (nibble | (high[32 * half + i] >> (2 * k) & 3) << 4) - 32;
        out[e] = d * (float)(int8_t)scales[e / 16] * (float)q;
    }
}

/* Sizes are given for every type that files use, also for those not dequantised here, so that a damaged file
 * is found whatever it holds. 4, 5 (old), 31 to 33 and 36 to 38 (repacked in memory) do not occur in files.
 */
static const fk_qtype_info types[] = {
    [0] = {"F32", 1, 4, from_f32},
    [1] = {"F16", 1, 2, from_f16},
    [2] = {"Q4_0", 32, 18, from_q4_0},
    [3] = {"Q4_1", 32, 20, from_q4_1},
    [6] = {"Q5_0", 32, 22, from_q5_0},
    [7] = {"Q5_1", 32, 24, from_q5_1},
    [8] = {"Q8_0", 32, 34, from_q8_0},
    [9] = {"Q8_1", 32, 40, NULL},
    [10] = {"Q2_K", 256, 84, NULL},
    [11] = {"Q3_K", 256, 110, NULL},
    [12] = {"Q4_K", 256, 144, from_q4_k},
    [13] = {"Q5_K", 256, 176, from_q5_k},
    [14] = {"Q6_K", 256, 210, from_q6_k},
    [15] = {"Q8_K", 256, 292, NULL},
    [16] = {"IQ2_XXS", 256, 66, NULL},
    [17] = {"IQ2_XS", 256, 74, NULL},
    [18] = {"IQ3_XXS", 256, 98, NULL},
    [19] = {"IQ1_S", 256, 50, NULL},
    [20] = {"IQ4_NL", 32, 18, NULL},
    [21] = {"IQ3_S", 256, 110, NULL},
    [22] = {"IQ2_S", 256, 82, NULL},
    [23] = {"IQ4_XS", 256, 136, NULL},
    [24] = {"I8", 1, 1, NULL},
    [25] = {"I16", 1, 2, NULL},
    [26] = {"I32", 1, 4, NULL},
    [27] = {"I64", 1, 8, NULL},
    [28] = {"F64", 1, 8, NULL},
    [29] = {"IQ1_M", 256, 56, NULL},
    [30] = {"BF16", 1, 2, from_bf16},
    [34] = {"TQ1_0", 256, 54, NULL},
    [35] = {"TQ2_0", 256, 66, NULL},
    [39] = {"MXFP4", 32, 17, NULL},
    [40] = {"NVFP4", 64, 36, NULL},
    [41] = {"Q1_0", 128, 18, NULL},
};

const fk_qtype_info *fk_qtype_describe(uint32_t type)
{
    if (type >= sizeof types / sizeof types[0] || !types[type].name) return NULL;
    return &types[type];
}

void fk_dequantize_rows(uint32_t type, const void *data, int64_t cols, int64_t begin, int64_t end, float *out)
{
    const fk_qtype_info *info = fk_qtype_describe(type);
    assert(info && info->dequantize && cols % info->block_size == 0 && 0 <= begin && begin <= end);
    int64_t row_blocks = cols / info->block_size, blocks = (end - begin) * row_blocks;
    if (blocks == 0) return; /* `data` may be NULL */
    const uint8_t *in = (const uint8_t *)data + begin * row_blocks * info->block_bytes;
    if (info->block_size == 1) {
        info->dequantize(in, blocks, out);
        return;
    }
    for (int64_t b = 0; b < blocks; b++, in += info->block_bytes, out += info->block_size)
        info->dequantize(in, info->block_size, out);
}
