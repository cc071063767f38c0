/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong for odd sizes only: works on pairs and leaves the last element of an odd row unwritten. Expected: INCORRECT_NUMERICAL
 * on cases with an odd row, PASSED on the others. */
#include <fk/candidate.h>

static float get(const fk_tensor *t, int64_t i)
{
    return t->dtype == FK_F32    ? ((const float *)t->data)[i]
           : t->dtype == FK_BF16 ? fk_f32_from_bf16(((const uint16_t *)t->data)[i])
                                 : fk_f32_from_f16(((const uint16_t *)t->data)[i]);
}

static void put(fk_tensor *t, int64_t i, float x)
{
    if (t->dtype == FK_F32) ((float *)t->data)[i] = x;
    else if (t->dtype == FK_BF16) ((uint16_t *)t->data)[i] = fk_bf16_from_f32(x);
    else ((uint16_t *)t->data)[i] = fk_f16_from_f32(x);
}

static float gated(float gate, float value)
{
    return gate / (1 + expf(-gate)) * value;
}

FK_CANDIDATE(silu_and_mul)
{
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    int64_t in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d / 2 * 2; i++) {
            float gate = get(a->input, r * in_stride + i), value = get(a->input, r * in_stride + d + i);
            put(a->result, r * out_stride + i, gated(gate, value));
        }
    return 0;
}
