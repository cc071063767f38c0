/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's SwiGLU block. A decode step (a few float32 tokens) makes two passes over the weights, whose reading is most of
 * it: gate and up rows are multiplied together and gated at once, so that their products never go to memory; then the
 * projection back. Dot products run along the features, which both operands hold densely: nothing is packed or transposed. A
 * pair of weight rows meets all tokens, six at a time, while it is in the nearest cache. More tokens and other dtypes go through
 * the operators below, which block their products. */
#include <fk/candidate.h>

#if defined(__AVX512F__)
#define WIDE 16
#elif defined(__AVX__)
#define WIDE 8
#else
#define WIDE 4
#endif
typedef float wide __attribute__((vector_size(WIDE * 4)));
#define TOKENS 6       /* of a tile, at most: */
#define ROWS 2         /* 12 sums that do not wait for each other */
#define MOST_TOKENS 12 /* beyond, blocked products win */

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
    typedef float quad __attribute__((vector_size(16)));
    quad parts[WIDE / 4];
    memcpy(parts, &v, sizeof v);
    for (int i = 1; i < WIDE / 4; i++) parts[0] += parts[i];
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

/* out[r][t] = w row r . x row t over k features; the tile's tokens are known at compile time after inlining. */
static inline __attribute__((always_inline)) void dots(const float *const w[ROWS], const float *x, int64_t x_stride, int tokens,
                                                       int64_t k, float out[ROWS][TOKENS])
{
    wide sums[ROWS][TOKENS];
    for (int r = 0; r < ROWS; r++)
        for (int t = 0; t < tokens; t++) sums[r][t] = (wide){0};
    int64_t i = 0;
    for (; i + WIDE <= k; i += WIDE) {
        wide w0 = load(w[0] + i), w1 = load(w[1] + i);
        for (int t = 0; t < tokens; t++) {
            wide v = load(x + t * x_stride + i);
            sums[0][t] += w0 * v;
            sums[1][t] += w1 * v;
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int t = 0; t < tokens; t++) {
            out[r][t] = sum(sums[r][t]);
            for (int64_t j = i; j < k; j++) out[r][t] += w[r][j] * x[t * x_stride + j];
        }
}

/* The same for 1 to TOKENS tokens. */
static void tile(const float *const w[ROWS], const float *x, int64_t x_stride, int tokens, int64_t k, float out[ROWS][TOKENS])
{
    switch (tokens) {
    case 1: dots(w, x, x_stride, 1, k, out); break;
    case 2: dots(w, x, x_stride, 2, k, out); break;
    case 3: dots(w, x, x_stride, 3, k, out); break;
    case 4: dots(w, x, x_stride, 4, k, out); break;
    case 5: dots(w, x, x_stride, 5, k, out); break;
    default: dots(w, x, x_stride, TOKENS, k, out);
    }
}

/* Tokens in as few tiles as possible, all but the last of this size. */
static int tile_tokens(int64_t tokens)
{
    int64_t tiles = (tokens + TOKENS - 1) / TOKENS;
    return (int)((tokens + tiles - 1) / tiles);
}

static inline float silu(float x)
{
    return x / (1 + expf(-x));
}

/* Pairs of gate and up rows [begin, end). */
static void gate_up_part(void *user, int64_t begin, int64_t end)
{
    const block *b = (const block *)user;
    int most = tile_tokens(b->tokens);
    for (int64_t n = begin; n < end; n++) {
        const float *w[ROWS] = {b->gate_up + n * b->d, b->gate_up + (b->inner + n) * b->d};
        float out[ROWS][TOKENS];
        for (int64_t t = 0; t < b->tokens; t += most) {
            int tokens = b->tokens - t < most ? (int)(b->tokens - t) : most;
            tile(w, b->x + t * b->x_stride, b->x_stride, tokens, b->d, out);
            for (int k = 0; k < tokens; k++) b->gated[(t + k) * b->inner + n] = silu(out[0][k]) * out[1][k];
        }
    }
}

/* Rows [begin, end) of the projection back; an odd last one is computed twice. */
static void down_part(void *user, int64_t begin, int64_t end)
{
    const block *b = (const block *)user;
    int most = tile_tokens(b->tokens);
    for (int64_t n = begin; n < end; n += ROWS) {
        int rows = end - n < ROWS ? 1 : ROWS;
        const float *w[ROWS] = {b->down + n * b->inner, b->down + (n + rows - 1) * b->inner};
        float out[ROWS][TOKENS];
        for (int64_t t = 0; t < b->tokens; t += most) {
            int tokens = b->tokens - t < most ? (int)(b->tokens - t) : most;
            tile(w, b->gated + t * b->inner, b->inner, tokens, b->inner, out);
            for (int r = 0; r < rows; r++)
                for (int k = 0; k < tokens; k++) b->y[(t + k) * b->y_stride + n + r] = out[r][k];
        }
    }
}

/* Through linear and silu_and_mul, as the reference composes it. */
static int compose(const fk_llama_mlp_args *a, int64_t tokens, int64_t d, int64_t inner)
{
    fk_scratch scratch;
    int64_t size = a->x->dtype == FK_F32 ? 4 : 2;
    if (fk_scratch_alloc(a->x, 3 * tokens * inner * size, &scratch) != 0) return -1;
    fk_tensor both = {scratch.data, a->x->dtype, 2, a->x->device, {tokens, 2 * inner}, {2 * inner, 1}};
    fk_tensor gated = {(char *)scratch.data + 2 * tokens * inner * size, a->x->dtype, 2, a->x->device, {tokens, inner}, {inner, 1}};
    fk_tensor x = {a->x->data, a->x->dtype, 2, a->x->device, {tokens, d}, {fk_row_stride(a->x), 1}};
    fk_tensor y = {a->output->data, a->output->dtype, 2, a->output->device, {tokens, d}, {fk_row_stride(a->output), 1}};
    fk_linear_args up = {.output = &both, .input = &x, .weight = a->gate_up_proj};
    fk_silu_and_mul_args gate = {.result = &gated, .input = &both};
    fk_linear_args down = {.output = &y, .input = &gated, .weight = a->down_proj};
    int status = fk_lower_linear(&up) || fk_lower_silu_and_mul(&gate) || fk_lower_linear(&down) ? -1 : 0;
    fk_scratch_free(&scratch);
    return status;
}

static bool dense_f32(const fk_tensor *t)
{
    return t->dtype == FK_F32 && (t->shape[0] <= 1 || fk_row_stride(t) == t->shape[1]);
}

FK_CANDIDATE(llama_mlp)
{
    int64_t tokens, d, inner = a->down_proj->shape[1];
    fk_rows_cols(a->x, &tokens, &d);
    if (tokens == 0 || d == 0) return 0;
    if (tokens > MOST_TOKENS || a->x->dtype != FK_F32 || !dense_f32(a->gate_up_proj) || !dense_f32(a->down_proj))
        return compose(a, tokens, d, inner);
    fk_scratch scratch;
    if (fk_scratch_alloc(a->x, tokens * inner * (int64_t)sizeof(float), &scratch) != 0) return -1;
    block b = {.x = FK_PTR(const float, a->x), .gate_up = FK_PTR(const float, a->gate_up_proj), .down = FK_PTR(const float, a->down_proj),
               .gated = (float *)scratch.data, .y = FK_PTR(float, a->output), .tokens = tokens, .d = d, .inner = inner,
               .x_stride = fk_row_stride(a->x), .y_stride = fk_row_stride(a->output)};
    fk_candidate_parallel(inner, 1 + 16384 / d, gate_up_part, &b);
    fk_candidate_parallel(d, 1 + 16384 / (inner + 1), down_part, &b);
    fk_scratch_free(&scratch);
    return 0;
}
