/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's SwiGLU block in two passes over the weights: gate and up rows are multiplied together and gated at once, so that
 * their products never go to memory; then the projection back. A tile is 3 weight rows (or gate/up pairs) times 4 tokens in
 * vector accumulators, dot products run along the features, which both operands hold densely: nothing is packed or transposed.
 * Float32 inside; other dtypes are converted to scratch memory first. */
#include <fk/candidate.h>

#if defined(__AVX512F__)
#define WIDE 16
#else
#define WIDE 8
#endif
typedef float wide __attribute__((vector_size(WIDE * 4)));
#define TOKENS 4
#define ROWS 3

typedef struct block {
    const float *x, *gate_up, *down; /* [T, D], [2*I, D], [D, I] */
    float *gated, *y;                /* [T, I], [T, D] */
    int64_t tokens, d, inner, x_stride, y_stride;
} block;

static inline wide load(const float *p)
{
    wide v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float sum(wide v)
{
    float s[WIDE];
    memcpy(s, &v, sizeof s);
    for (int n = WIDE / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) s[i] += s[i + n];
    return s[0];
}

/* out[r][t] = w row r . x row t over k features; rows and tokens are the tile's, known at compile time after inlining. */
static inline __attribute__((always_inline)) void dots(const float *const *w, int rows, const float *x, int64_t x_stride,
                                                       int tokens, int64_t k, float out[2 * ROWS][TOKENS])
{
    wide acc[2 * ROWS][TOKENS];
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < tokens; t++) acc[r][t] = (wide){0};
    int64_t i = 0;
    for (; i + WIDE <= k; i += WIDE) {
        wide xs[TOKENS];
        for (int t = 0; t < tokens; t++) xs[t] = load(x + t * x_stride + i);
        for (int r = 0; r < rows; r++) {
            wide v = load(w[r] + i);
            for (int t = 0; t < tokens; t++) acc[r][t] += v * xs[t];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < tokens; t++) {
            float s = sum(acc[r][t]);
            for (int64_t j = i; j < k; j++) s += w[r][j] * x[t * x_stride + j];
            out[r][t] = s;
        }
}

static inline float silu(float x)
{
    return x / (1 + expf(-x));
}

/* Pairs of gate and up rows [begin, end): two weight rows a pair, one pair by 4 tokens at a time (8 accumulators). */
static void gate_up_part(void *user, int64_t begin, int64_t end)
{
    const block *b = (const block *)user;
    for (int64_t n = begin; n < end; n++) {
        const float *w[2] = {b->gate_up + n * b->d, b->gate_up + (b->inner + n) * b->d};
        float out[2 * ROWS][TOKENS];
        int64_t t = 0;
        for (; t + TOKENS <= b->tokens; t += TOKENS) {
            dots(w, 2, b->x + t * b->x_stride, b->x_stride, TOKENS, b->d, out);
            for (int k = 0; k < TOKENS; k++) b->gated[(t + k) * b->inner + n] = silu(out[0][k]) * out[1][k];
        }
        for (; t < b->tokens; t++) {
            dots(w, 2, b->x + t * b->x_stride, b->x_stride, 1, b->d, out);
            b->gated[t * b->inner + n] = silu(out[0][0]) * out[1][0];
        }
    }
}

static void down_part(void *user, int64_t begin, int64_t end)
{
    const block *b = (const block *)user;
    for (int64_t n = begin; n < end; n += ROWS) {
        int rows = end - n < ROWS ? (int)(end - n) : ROWS;
        const float *w[ROWS];
        float out[2 * ROWS][TOKENS];
        for (int r = 0; r < rows; r++) w[r] = b->down + (n + r) * b->inner;
        int64_t t = 0;
        for (; t + TOKENS <= b->tokens; t += TOKENS) {
            if (rows == ROWS) dots(w, ROWS, b->gated + t * b->inner, b->inner, TOKENS, b->inner, out);
            else for (int r = 0; r < rows; r++) dots(w + r, 1, b->gated + t * b->inner, b->inner, TOKENS, b->inner, out + r);
            for (int r = 0; r < rows; r++)
                for (int k = 0; k < TOKENS; k++) b->y[(t + k) * b->y_stride + n + r] = out[r][k];
        }
        for (; t < b->tokens; t++)
            for (int r = 0; r < rows; r++) {
                dots(w + r, 1, b->gated + t * b->inner, b->inner, 1, b->inner, out);
                b->y[t * b->y_stride + n + r] = out[0][0];
            }
    }
}

typedef struct conversion {
    const fk_tensor *from;
    float *to;
} conversion;

static void convert_part(void *user, int64_t begin, int64_t end)
{
    const conversion *c = (const conversion *)user;
    int64_t rows, cols, stride = fk_row_stride(c->from);
    fk_rows_cols(c->from, &rows, &cols);
    for (int64_t r = begin; r < end; r++)
        for (int64_t i = 0; i < cols; i++) {
            const uint16_t *half = (const uint16_t *)c->from->data + r * stride + i;
            c->to[r * cols + i] = c->from->dtype == FK_F32    ? ((const float *)c->from->data)[r * stride + i]
                                  : c->from->dtype == FK_BF16 ? fkp_f32_from_bf16(*half)
                                                              : fkp_f32_from_f16(*half);
        }
}

/* Floats of scratch that as_float needs: none for dense float32 rows. */
static int64_t room_for(const fk_tensor *t)
{
    int64_t rows, cols;
    fk_rows_cols(t, &rows, &cols);
    return t->dtype == FK_F32 && (rows <= 1 || fk_row_stride(t) == cols) ? 0 : rows * cols;
}

/* The tensor as dense float32 rows: itself when it is, else converted into *room, which moves on. */
static const float *as_float(const fk_tensor *t, float **room)
{
    int64_t rows, cols;
    fk_rows_cols(t, &rows, &cols);
    if (room_for(t) == 0) return (const float *)t->data;
    conversion c = {t, *room};
    fk_candidate_parallel(rows, 1 + 65536 / cols, convert_part, &c);
    *room += rows * cols;
    return c.to;
}

FK_CANDIDATE(llama_mlp)
{
    int64_t tokens, d, inner = a->down_proj->shape[1];
    fk_rows_cols(a->x, &tokens, &d);
    if (tokens == 0 || d == 0) return 0;
    bool direct = a->output->dtype == FK_F32;
    int64_t floats = tokens * (inner + d) + room_for(a->x) + room_for(a->gate_up_proj) + room_for(a->down_proj);
    fk_scratch scratch;
    if (fk_scratch_alloc(a->x, floats * (int64_t)sizeof(float), &scratch) != 0) return -1;
    float *room = (float *)scratch.data;
    block b = {.tokens = tokens, .d = d, .inner = inner, .x_stride = d};
    b.gated = room;
    room += tokens * inner;
    b.y = direct ? FK_PTR(float, a->output) : room;
    b.y_stride = direct ? fk_row_stride(a->output) : d;
    if (!direct) room += tokens * d;
    b.x = as_float(a->x, &room);
    b.gate_up = as_float(a->gate_up_proj, &room);
    b.down = as_float(a->down_proj, &room);
    fk_candidate_parallel(inner, 1 + 16384 / d, gate_up_part, &b);
    fk_candidate_parallel(d, 1 + 16384 / (inner + 1), down_part, &b);
    if (!direct)
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t i = 0; i < d; i++) {
                uint16_t *half = (uint16_t *)a->output->data + t * fk_row_stride(a->output) + i;
                *half = a->output->dtype == FK_BF16 ? fkp_bf16_from_f32(b.y[t * d + i]) : fkp_f16_from_f32(b.y[t * d + i]);
            }
    fk_scratch_free(&scratch);
    return 0;
}
