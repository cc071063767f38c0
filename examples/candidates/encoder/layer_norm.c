/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm for float32 rows that are whole vectors long, in two passes instead of three: sums of x - c and of its square in one,
 * where c, the mean of the row's first elements, is near enough to the row's mean that nothing cancels. Other rows take three passes
 * in double. */
#include <fk/candidate.h>

#if defined(__AVX__)
#define WIDE 8
#else
#define WIDE 4
#endif
typedef float wide __attribute__((vector_size(WIDE * 4)));
#define CHAINS 4 /* sums at once, since each waits for itself */

typedef const fk_layer_norm_args *args_t;

static inline wide load(const float *p)
{
    wide v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float sum_of(wide v)
{
    for (int n = WIDE / 2; n > 0; n /= 2)
        for (int k = 0; k < n; k++) v[k] += v[k + n];
    return v[0];
}

static void row_f32(float *restrict y, const float *restrict x, const float *restrict w, const float *restrict b, int64_t d, float eps)
{
    const float c = sum_of(load(x)) / WIDE;
    wide sums[CHAINS] = {{0}}, squares[CHAINS] = {{0}};
    int64_t i = 0;
    for (; i + CHAINS * WIDE <= d; i += CHAINS * WIDE)
        for (int k = 0; k < CHAINS; k++) {
            wide v = load(x + i + k * WIDE) - c;
            sums[k] += v;
            squares[k] += v * v;
        }
    for (; i < d; i += WIDE) {
        wide v = load(x + i) - c;
        sums[0] += v;
        squares[0] += v * v;
    }
    float mean = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3])) / (float)d;
    float variance = sum_of((squares[0] + squares[1]) + (squares[2] + squares[3])) / (float)d - mean * mean;
    float scale = 1 / sqrtf((variance > 0 ? variance : 0) + eps);
    for (i = 0; i < d; i += WIDE) {
        wide v = (load(x + i) - (c + mean)) * scale;
        if (w) v *= load(w + i);
        if (b) v += load(b + i);
        memcpy(y + i, &v, sizeof v);
    }
}

static inline double element(const fk_tensor *t, int64_t i)
{
    return t->dtype == FK_F32    ? (double)((const float *)t->data)[i]
           : t->dtype == FK_BF16 ? (double)fk_f32_from_bf16(((const uint16_t *)t->data)[i])
                                 : (double)fk_f32_from_f16(((const uint16_t *)t->data)[i]);
}

static inline void set_element(fk_tensor *t, int64_t i, float x)
{
    if (t->dtype == FK_F32) ((float *)t->data)[i] = x;
    else if (t->dtype == FK_BF16) ((uint16_t *)t->data)[i] = fk_bf16_from_f32(x);
    else ((uint16_t *)t->data)[i] = fk_f16_from_f32(x);
}

static void row_any(args_t a, int64_t in, int64_t out, int64_t d)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < d; i++) mean += element(a->input, in + i);
    mean /= (double)d;
    for (int64_t i = 0; i < d; i++) variance += (element(a->input, in + i) - mean) * (element(a->input, in + i) - mean);
    double scale = 1 / sqrt(variance / (double)d + (double)a->eps);
    for (int64_t i = 0; i < d; i++) {
        double v = (element(a->input, in + i) - mean) * scale;
        if (a->weight) v *= element(a->weight, i);
        if (a->bias) v += element(a->bias, i);
        set_element(a->output, out + i, (float)v);
    }
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    args_t a = (args_t)user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->output);
    fk_rows_cols(a->input, &rows, &d);
    bool fast = d % WIDE == 0 && a->input->dtype == FK_F32 && (!a->weight || a->weight->dtype == FK_F32) && (!a->bias || a->bias->dtype == FK_F32);
    for (int64_t r = begin; r < end; r++) {
        if (fast) row_f32(FK_PTR(float, a->output) + r * out_stride, FK_PTR(const float, a->input) + r * in_stride, FK_PTR(const float, a->weight),
                          FK_PTR(const float, a->bias), d, a->eps);
        else row_any(a, r * in_stride, r * out_stride, d);
    }
}

FK_CANDIDATE(layer_norm)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    fk_candidate_parallel(rows, 1 + 16384 / d, rows_part, (void *)(uintptr_t)a);
    return 0;
}
