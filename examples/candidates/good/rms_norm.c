/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm for float32, bfloat16 and float16: sixteen partial sums a row, then one scaled copy. Loops are plain C over float
 * vectors that the compiler maps to the machine's widest registers. */
#include <fk/candidate.h>

typedef float wide __attribute__((vector_size(64))); /* one register with AVX-512, two with AVX2 */
#define WIDE 16

typedef const fk_rms_norm_args *args_t;

static inline float element(const fk_tensor *t, int64_t i)
{
    return t->dtype == FK_F32    ? ((const float *)t->data)[i]
           : t->dtype == FK_BF16 ? fk_f32_from_bf16(((const uint16_t *)t->data)[i])
                                 : fk_f32_from_f16(((const uint16_t *)t->data)[i]);
}

static inline void set_element(fk_tensor *t, int64_t i, float x)
{
    if (t->dtype == FK_F32) ((float *)t->data)[i] = x;
    else if (t->dtype == FK_BF16) ((uint16_t *)t->data)[i] = fk_bf16_from_f32(x);
    else ((uint16_t *)t->data)[i] = fk_f16_from_f32(x);
}

static float sum_of_squares_f32(const float *x, int64_t d)
{
    wide a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * WIDE <= d; i += 2 * WIDE) {
        wide u, v;
        memcpy(&u, x + i, sizeof u);
        memcpy(&v, x + i + WIDE, sizeof v);
        a += u * u;
        b += v * v;
    }
    a += b;
    float sum = 0;
    for (int k = 0; k < WIDE; k++) sum += a[k];
    for (; i < d; i++) sum += x[i] * x[i];
    return sum;
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    args_t a = (args_t)user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->input, &rows, &d);
    bool all_f32 = a->input->dtype == FK_F32 && (!a->weight || a->weight->dtype == FK_F32);
    for (int64_t r = begin; r < end; r++) {
        if (all_f32) {
            const float *x = FK_PTR(const float, a->input) + r * in_stride, *w = FK_PTR(const float, a->weight);
            float *y = FK_PTR(float, a->result) + r * out_stride;
            float scale = 1 / sqrtf(sum_of_squares_f32(x, d) / (float)d + a->epsilon);
            if (w) for (int64_t i = 0; i < d; i++) y[i] = x[i] * scale * w[i];
            else for (int64_t i = 0; i < d; i++) y[i] = x[i] * scale;
            continue;
        }
        float sums[WIDE] = {0}, sum = 0;
        for (int64_t i = 0; i < d; i++) {
            float x = element(a->input, r * in_stride + i);
            sums[i % WIDE] += x * x;
        }
        for (int k = 0; k < WIDE; k++) sum += sums[k];
        float scale = 1 / sqrtf(sum / (float)d + a->epsilon);
        for (int64_t i = 0; i < d; i++)
            set_element(a->result, r * out_stride + i,
                        element(a->input, r * in_stride + i) * scale * (a->weight ? element(a->weight, i) : 1));
    }
}

FK_CANDIDATE(rms_norm)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    fk_candidate_parallel(rows, 1 + 32768 / d, rows_part, (void *)(uintptr_t)a);
    return 0;
}
