/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm for float32, bfloat16 and float16: partial sums in vectors a row, then one scaled copy. Loops are plain C over float
 * vectors as wide as the machine's registers. */
#include <fk/candidate.h>

#if defined(__AVX512F__)
#define WIDE 16
#elif defined(__AVX__)
#define WIDE 8
#else
#define WIDE 4
#endif
typedef float wide __attribute__((vector_size(WIDE * 4)));
#define CHAINS 4 /* sums at once, since each waits for itself */

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

static inline wide load(const float *p)
{
    wide v;
    memcpy(&v, p, sizeof v);
    return v;
}

static float sum_of_squares_f32(const float *x, int64_t d)
{
    wide sums[CHAINS] = {{0}};
    int64_t i = 0;
    for (; i + CHAINS * WIDE <= d; i += CHAINS * WIDE)
        for (int c = 0; c < CHAINS; c++) sums[c] += load(x + i + c * WIDE) * load(x + i + c * WIDE);
    sums[0] += sums[1] + (sums[2] + sums[3]);
    float parts[WIDE];
    memcpy(parts, &sums[0], sizeof parts);
    for (int n = WIDE / 2; n > 0; n /= 2)
        for (int k = 0; k < n; k++) parts[k] += parts[k + n];
    for (; i < d; i++) parts[0] += x[i] * x[i];
    return parts[0];
}

static inline void scale_f32(float *restrict y, const float *restrict x, const float *restrict w, float scale, int64_t d)
{
    if (w) for (int64_t i = 0; i < d; i++) y[i] = x[i] * scale * w[i];
    else for (int64_t i = 0; i < d; i++) y[i] = x[i] * scale;
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
            scale_f32(y, x, w, scale, d);
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
