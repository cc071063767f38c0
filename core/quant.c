/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF block types: sizes of all, dequantisation of those in use. Blocks are unaligned bytes, little-endian.
 */
#include "core/quant.h"

#include <assert.h>
#include <string.h>

#include "core/dtype.h"

/* Sizes are given for every type that files use, also for those not dequantised here, so that a damaged file
 * is found whatever it holds. 4, 5 (old), 31 to 33 and 36 to 38 (repacked in memory) do not occur in files.
 */
static const fk_qtype_info types[] = {
    [0] = {"F32", 1, 4, true},          [1] = {"F16", 1, 2, true},
    [2] = {"Q4_0", 32, 18, false},      [3] = {"Q4_1", 32, 20, true},
    [6] = {"Q5_0", 32, 22, false},      [7] = {"Q5_1", 32, 24, false},
    [8] = {"Q8_0", 32, 34, true},       [9] = {"Q8_1", 32, 40, false},
    [10] = {"Q2_K", 256, 84, false},    [11] = {"Q3_K", 256, 110, false},
    [12] = {"Q4_K", 256, 144, false},   [13] = {"Q5_K", 256, 176, false},
    [14] = {"Q6_K", 256, 210, false},   [15] = {"Q8_K", 256, 292, false},
    [16] = {"IQ2_XXS", 256, 66, false}, [17] = {"IQ2_XS", 256, 74, false},
    [18] = {"IQ3_XXS", 256, 98, false}, [19] = {"IQ1_S", 256, 50, false},
    [20] = {"IQ4_NL", 32, 18, false},   [21] = {"IQ3_S", 256, 110, false},
    [22] = {"IQ2_S", 256, 82, false},   [23] = {"IQ4_XS", 256, 136, false},
    [24] = {"I8", 1, 1, false},         [25] = {"I16", 1, 2, false},
    [26] = {"I32", 1, 4, false},        [27] = {"I64", 1, 8, false},
    [28] = {"F64", 1, 8, false},        [29] = {"IQ1_M", 256, 56, false},
    [30] = {"BF16", 1, 2, false},       [34] = {"TQ1_0", 256, 54, false},
    [35] = {"TQ2_0", 256, 66, false},   [39] = {"MXFP4", 32, 17, false},
    [40] = {"NVFP4", 64, 36, false},    [41] = {"Q1_0", 128, 18, false},
};

const fk_qtype_info *fk_qtype_describe(uint32_t type)
{
    if (type >= sizeof types / sizeof types[0] || !types[type].name) return NULL;
    return &types[type];
}

static float half_at(const uint8_t *bytes)
{
    return fk_f32_from_f16((uint16_t)(bytes[0] | bytes[1] << 8));
}

static void dequantize_f16(const uint8_t *in, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) out[i] = half_at(in + 2 * i);
}

/* Low nibbles hold elements 0 to 15, high nibbles 16 to 31. */
static void dequantize_q4_1(const uint8_t *in, int64_t blocks, float *out)
{
    for (int64_t b = 0; b < blocks; b++, in += 20, out += 32) {
        float d = half_at(in), m = half_at(in + 2);
        for (int i = 0; i < 16; i++) {
            out[i] = d * (float)(in[4 + i] & 15) + m;
            out[i + 16] = d * (float)(in[4 + i] >> 4) + m;
        }
    }
}

static void dequantize_q8_0(const uint8_t *in, int64_t blocks, float *out)
{
    for (int64_t b = 0; b < blocks; b++, in += 34, out += 32) {
        float d = half_at(in);
        for (int i = 0; i < 32; i++) out[i] = (float)(int8_t)in[2 + i] * d;
    }
}

void fk_dequantize_rows(uint32_t type, const void *data, int64_t cols, int64_t begin, int64_t end, float *out)
{
    const fk_qtype_info *info = fk_qtype_describe(type);
    assert(info && info->can_dequantize && cols % info->block_size == 0 && 0 <= begin && begin <= end);
    int64_t row_blocks = cols / info->block_size, blocks = (end - begin) * row_blocks;
    if (blocks == 0) return; /* `data` may be NULL */
    const uint8_t *in = (const uint8_t *)data + begin * row_blocks * info->block_bytes;
    switch (type) {
    case FK_Q_F32:
        memcpy(out, in, (size_t)blocks * sizeof *out);
        break;
    case FK_Q_F16:
        dequantize_f16(in, blocks, out);
        break;
    case FK_Q_Q4_1:
        dequantize_q4_1(in, blocks, out);
        break;
    case FK_Q_Q8_0:
        dequantize_q8_0(in, blocks, out);
        break;
    default:
        break; /* excluded by the assertion */
    }
}
