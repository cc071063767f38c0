/* SPDX-License-Identifier: Apache-2.0 */
/* Products of many rows: output [M, N] = input [M, K] weight [N, K]^T + bias, for M of 5 and up; fewer rows take core/gemv.h.
 *
 * Vectors run over the rows of the input, so that both operands stay K-contiguous and the weight needs no transposing:
 *
 *   packed input, panels of 2 vectors of rows     weight block of FKP_GEMM_BLOCK rows, a copy in float32
 *     [panel][k][row in panel]                      [chunk of k][row][k in chunk]
 *
 * A tile holds 2 vectors x FKP_GEMM_COLUMNS outputs in registers and walks a chunk of k: two vector loads, one broadcast a
 * column. A thread owns blocks of weight rows: it reads each weight once from memory, converts it on the way, and keeps the
 * block in its L2 cache while all panels pass; a panel's chunk stays in L1 while the tiles of a block pass.
 * A row's sums run over k in chunks of FKP_GEMM_DEPTH in a fixed order: the result depends neither on the number of threads
 * nor on the number of rows.
 *
 * Where both operands are bfloat16 and the processor multiplies pairs of them (AVX512-BF16), a step of k is a pair: the same
 * layouts hold two values of bfloat16 in place of a float32, nothing is converted, and a step does twice the work.
 * Included by CPU kernels, once an instruction-set level. */
#ifndef FK_CORE_GEMM_H
#define FK_CORE_GEMM_H

#include <stdlib.h>

#include <fk/ctx.h>

#include "core/cpu_features.h"
#include "core/simd.h"
#include "core/simd_fp8.h"
#include "core/threads.h"

#define FKP_GEMM_MIN_ROWS 5
#define FKP_GEMM_SCALED 128 /* FKP_GEMM_DEPTH is a multiple */
#define FKP_GEMM_DEPTH 384
/* Distance between rows of a chunk: not a multiple of the cache's way, so that the rows of a tile lie in different sets. */
#define FKP_GEMM_STRIDE (FKP_GEMM_DEPTH + 16)
#define FKP_GEMM_PANEL (2 * FKP_LANES)
#if FKP_LANES == 16 /* 32 vector registers: 24 sums; else 16 registers: 12 sums */
#define FKP_GEMM_COLUMNS 12
#define FKP_GEMM_BLOCK 48
#else
#define FKP_GEMM_COLUMNS 6
#define FKP_GEMM_BLOCK 24
#endif

#if defined(__AVX512F__)
#define FKP_GEMM_PAIRS 1
#else
#define FKP_GEMM_PAIRS 0
#endif

typedef struct fkp_gemm_job {
    int64_t m, n, k;
    int64_t input_stride, weight_stride, output_stride; /* in elements */
    const void *input, *weight, *bias;                  /* bias NULL: none */
    void *output;
    fk_dtype input_dtype, weight_dtype, bias_dtype;
    fk_dtype output_dtype;      /* FK_NONE: the input's */
    const float *weight_scale;  /* of FK_F8_E4M3 weights: a factor for each block of FKP_GEMM_SCALED x FKP_GEMM_SCALED */
    int64_t weight_scale_stride;
    bool pairs;                                     /* a step of k is two values of bfloat16 */
    int64_t steps;                                  /* of k */
    int parts;                                      /* threads */
    float *panels;                                  /* packed input */
    float *blocks;                                  /* one converted weight block a thread */
} fkp_gemm_job;

/* Rows of a panel: a last panel with one vector of rows or less is half as wide. */
static inline int fkp_gemm_width(const fkp_gemm_job *job, int64_t panel)
{
    return job->m - panel * FKP_GEMM_PANEL > FKP_LANES ? FKP_GEMM_PANEL : FKP_LANES;
}

static inline int64_t fkp_gemm_block_floats(int64_t steps)
{
    return (steps + FKP_GEMM_DEPTH - 1) / FKP_GEMM_DEPTH * FKP_GEMM_BLOCK * FKP_GEMM_STRIDE;
}

/* One vector of input rows from `row` on, all k, to `to` with `width` floats between k and k + 1. Rows past m are zeros. */
static inline void fkp_gemm_pack_vector(const fkp_gemm_job *job, int64_t row, float *to, int width)
{
    int64_t rows = job->m - row < FKP_LANES ? job->m - row : FKP_LANES, k = 0;
    for (; k + FKP_LANES <= job->k; k += FKP_LANES) {
        fkp_vf square[FKP_LANES];
        for (int i = 0; i < FKP_LANES; i++)
            square[i] = i < rows ? fkp_v_load(job->input, job->input_dtype, (row + i) * job->input_stride + k) : fkp_v_set(0);
        fkp_v_transpose(square);
        for (int i = 0; i < FKP_LANES; i++) fkp_v_store_f32(to + (k + i) * width, square[i]);
    }
    for (; k < job->k; k++)
        for (int i = 0; i < FKP_LANES; i++)
            to[k * width + i] = i < rows ? fkp_s_load(job->input, job->input_dtype, (row + i) * job->input_stride + k) : 0;
}

/* Pair `step` of a row of bfloat16, as bits in a float; past the end zeros. */
static inline float fkp_gemm_pair(const fkp_gemm_job *job, const void *data, int64_t row, int64_t step)
{
    float bits = 0;
    memcpy(&bits, (const uint16_t *)data + row + 2 * step, 2 * step + 1 < job->k ? 4 : 2);
    return bits;
}

/* fkp_gemm_pack_vector for pairs. */
static inline void fkp_gemm_pack_pairs(const fkp_gemm_job *job, int64_t row, float *to, int width)
{
    int64_t rows = job->m - row < FKP_LANES ? job->m - row : FKP_LANES, p = 0;
    for (; 2 * (p + FKP_LANES) <= job->k; p += FKP_LANES) {
        fkp_vf square[FKP_LANES];
        for (int i = 0; i < FKP_LANES; i++) {
            square[i] = fkp_v_set(0);
            if (i < rows) memcpy(&square[i], (const uint16_t *)job->input + (row + i) * job->input_stride + 2 * p, sizeof square[i]);
        }
        fkp_v_transpose(square);
        for (int i = 0; i < FKP_LANES; i++) fkp_v_store_f32(to + (p + i) * width, square[i]);
    }
    for (; p < job->steps; p++)
        for (int i = 0; i < FKP_LANES; i++)
            to[p * width + i] = i < rows ? fkp_gemm_pair(job, job->input, (row + i) * job->input_stride, p) : 0;
}

static void fkp_gemm_pack_part(void *user, int64_t begin, int64_t end)
{
    const fkp_gemm_job *job = user;
    for (int64_t panel = begin; panel < end; panel++) {
        int width = fkp_gemm_width(job, panel);
        float *to = job->panels + panel * FKP_GEMM_PANEL * job->steps;
        for (int v = 0; v < width / FKP_LANES; v++) {
            int64_t row = panel * FKP_GEMM_PANEL + v * FKP_LANES;
            if (job->pairs) fkp_gemm_pack_pairs(job, row, to + v * FKP_LANES, width);
            else fkp_gemm_pack_vector(job, row, to + v * FKP_LANES, width);
        }
    }
}

/* Converts the weight rows [first, first + FKP_GEMM_BLOCK) to [chunk][row][k in chunk]; rows past n repeat the last one,
 * whose products are then dropped. */
static inline __attribute__((always_inline)) void fkp_gemm_convert(const fkp_gemm_job *job, fk_dtype dtype, int64_t first,
                                                                   float *block)
{
    for (int r = 0; r < FKP_GEMM_BLOCK; r++) {
        int64_t row = (first + r < job->n ? first + r : job->n - 1) * job->weight_stride;
        float *to = block + r * FKP_GEMM_STRIDE;
        for (int64_t k = 0; k < job->k; k += FKP_GEMM_DEPTH, to += FKP_GEMM_BLOCK * FKP_GEMM_STRIDE) {
            int64_t depth = job->k - k < FKP_GEMM_DEPTH ? job->k - k : FKP_GEMM_DEPTH, i = 0;
            for (; i + FKP_LANES <= depth; i += FKP_LANES) fkp_v_store_f32(to + i, fkp_v_load(job->weight, dtype, row + k + i));
            for (; i < depth; i++) to[i] = fkp_s_load(job->weight, dtype, row + k + i);
        }
    }
}

/* The same for pairs. */
static inline void fkp_gemm_copy_pairs(const fkp_gemm_job *job, int64_t first, float *block)
{
    for (int r = 0; r < FKP_GEMM_BLOCK; r++) {
        int64_t row = (first + r < job->n ? first + r : job->n - 1) * job->weight_stride;
        float *to = block + r * FKP_GEMM_STRIDE;
        for (int64_t p = 0; p < job->steps; p += FKP_GEMM_DEPTH, to += FKP_GEMM_BLOCK * FKP_GEMM_STRIDE) {
            int64_t depth = job->steps - p < FKP_GEMM_DEPTH ? job->steps - p : FKP_GEMM_DEPTH;
            memcpy(to, (const uint16_t *)job->weight + row + 2 * p, sizeof(float) * (size_t)(depth - 1));
            to[depth - 1] = fkp_gemm_pair(job, job->weight, row, p + depth - 1);
        }
    }
}

/* The same for FK_F8_E4M3 with block scales. */
static inline void fkp_gemm_convert_scaled(const fkp_gemm_job *job, int64_t first, float *block)
{
    for (int r = 0; r < FKP_GEMM_BLOCK; r++) {
        int64_t row = first + r < job->n ? first + r : job->n - 1;
        const uint8_t *from = (const uint8_t *)job->weight + row * job->weight_stride;
        const float *scales = job->weight_scale + row / FKP_GEMM_SCALED * job->weight_scale_stride;
        for (int64_t k = 0; k < job->k; k += FKP_GEMM_SCALED) {
            float *to = block + (k / FKP_GEMM_DEPTH * FKP_GEMM_BLOCK + r) * FKP_GEMM_STRIDE + k % FKP_GEMM_DEPTH;
            int64_t depth = job->k - k < FKP_GEMM_SCALED ? job->k - k : FKP_GEMM_SCALED, i = 0;
            for (; i + FKP_LANES <= depth; i += FKP_LANES)
                fkp_v_store_f32(to + i, fkp_v_load_e4m3(from + k + i) * scales[k / FKP_GEMM_SCALED]);
            if (i == depth) continue;
            uint8_t rest[FKP_LANES] = {0};
            memcpy(rest, from + k + i, (size_t)(depth - i));
            fkp_vf values = fkp_v_load_e4m3(rest) * scales[k / FKP_GEMM_SCALED];
            for (int64_t j = i; j < depth; j++) to[j] = values[j - i];
        }
    }
}

/* acc + a * w, or the products of both halves of pairs. */
static inline __attribute__((always_inline)) fkp_vf fkp_gemm_add(const bool pairs, fkp_vf acc, fkp_vf a, float w)
{
#if FKP_GEMM_PAIRS
    if (pairs) { /* in assembler, since the level as a whole is not compiled for AVX512-BF16 */
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(a), "v"(fkp_v_set(w)));
        return acc;
    }
#else
    (void)pairs;
#endif
    return acc + a * w;
}

/* sums[column][row] = (or +=, unless first) sum over `depth` of panel[k][row] * weight[column][k], for vectors * FKP_LANES rows and
 * `columns` columns; both are constants at each call, with a product that fits the registers. */
static inline __attribute__((always_inline)) void fkp_gemm_tile_of(const bool pairs, const int vectors, const int columns,
                                                                   int64_t depth, const float *panel, const float *weight,
                                                                   float *sums, bool first)
{
    fkp_vf acc[2 * FKP_GEMM_COLUMNS];
#pragma GCC unroll 24
    for (int i = 0; i < vectors * columns; i++) acc[i] = fkp_v_set(0);
    for (int64_t k = 0; k < depth; k++) {
        fkp_vf a[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) a[v] = fkp_v_load_f32(panel + k * vectors * FKP_LANES + v * FKP_LANES);
#pragma GCC unroll 24
        for (int c = 0; c < columns; c++) {
            float w = weight[c * FKP_GEMM_STRIDE + k];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) acc[c * vectors + v] = fkp_gemm_add(pairs, acc[c * vectors + v], a[v], w);
        }
    }
#pragma GCC unroll 24
    for (int i = 0; i < vectors * columns; i++) {
        float *to = sums + i * FKP_LANES;
        fkp_v_store_f32(to, first ? acc[i] : fkp_v_load_f32(to) + acc[i]);
    }
}

static inline __attribute__((always_inline)) void fkp_gemm_tile(const int vectors, const int columns, int64_t depth,
                                                                const float *panel, const float *weight, float *sums, bool first)
{
    fkp_gemm_tile_of(false, vectors, columns, depth, panel, weight, sums, first);
}

/* All sums of one panel with one block of weights. */
static inline __attribute__((always_inline)) void fkp_gemm_panel_block(const fkp_gemm_job *job, const bool pairs, const float *panel,
                                                                       int width, const float *block, float *sums)
{
    int64_t k = 0;
    do { /* once without any k: sums of nothing are zeros */
        int64_t depth = job->steps - k < FKP_GEMM_DEPTH ? job->steps - k : FKP_GEMM_DEPTH;
        const float *weight = block + k / FKP_GEMM_DEPTH * FKP_GEMM_BLOCK * FKP_GEMM_STRIDE, *from = panel + k * width;
        if (width == FKP_GEMM_PANEL)
            for (int c = 0; c < FKP_GEMM_BLOCK; c += FKP_GEMM_COLUMNS)
                fkp_gemm_tile_of(pairs, 2, FKP_GEMM_COLUMNS, depth, from, weight + c * FKP_GEMM_STRIDE, sums + c * FKP_GEMM_PANEL, k == 0);
        else
            for (int c = 0; c < FKP_GEMM_BLOCK; c += 2 * FKP_GEMM_COLUMNS)
                fkp_gemm_tile_of(pairs, 1, 2 * FKP_GEMM_COLUMNS, depth, from, weight + c * FKP_GEMM_STRIDE, sums + c * FKP_LANES, k == 0);
        k += FKP_GEMM_DEPTH;
    } while (k < job->steps);
}

/* Turns sums[column][row] of a panel and a block round, adds the bias and stores what lies inside the output. */
static inline void fkp_gemm_store(const fkp_gemm_job *job, const float *sums, int width, int64_t row, int64_t column)
{
    for (int r = 0; r < width && row + r < job->m; r += FKP_LANES)
        for (int c = 0; c < FKP_GEMM_BLOCK && column + c < job->n; c += FKP_LANES) {
            fkp_vf square[FKP_LANES];
            for (int i = 0; i < FKP_LANES; i++) square[i] = fkp_v_load_f32(sums + (c + i) * width + r);
            fkp_v_transpose(square);
            bool whole = column + c + FKP_LANES <= job->n;
            fkp_vf bias = fkp_v_set(0);
            if (job->bias && whole) bias = fkp_v_load(job->bias, job->bias_dtype, column + c);
            for (int i = 0; i < FKP_LANES && row + r + i < job->m; i++) {
                int64_t at = (row + r + i) * job->output_stride + column + c;
                if (whole) {
                    fkp_v_store(job->output, job->output_dtype, at, square[i] + bias);
                    continue;
                }
                float values[FKP_LANES];
                fkp_v_store_f32(values, square[i]);
                for (int j = 0; column + c + j < job->n; j++)
                    fkp_s_store(job->output, job->output_dtype, at + j,
                                values[j] + (job->bias ? fkp_s_load(job->bias, job->bias_dtype, column + c + j) : 0));
            }
        }
}

static void fkp_gemm_part(void *user, int64_t begin, int64_t end)
{
    const fkp_gemm_job *job = user;
    int64_t blocks = (job->n + FKP_GEMM_BLOCK - 1) / FKP_GEMM_BLOCK;
    float sums[FKP_GEMM_BLOCK * FKP_GEMM_PANEL] __attribute__((aligned(64)));
    for (int64_t part = begin; part < end; part++) {
        float *block = job->blocks + part * fkp_gemm_block_floats(job->steps);
        for (int64_t b = blocks * part / job->parts; b < blocks * (part + 1) / job->parts; b++) {
            int64_t column = b * FKP_GEMM_BLOCK;
            if (job->pairs) fkp_gemm_copy_pairs(job, column, block);
            else if (job->weight_dtype == FK_F32) fkp_gemm_convert(job, FK_F32, column, block);
            else if (job->weight_dtype == FK_BF16) fkp_gemm_convert(job, FK_BF16, column, block);
            else if (job->weight_dtype == FK_F8_E4M3) fkp_gemm_convert_scaled(job, column, block);
            else fkp_gemm_convert(job, FK_F16, column, block);
            for (int64_t row = 0; row < job->m; row += FKP_GEMM_PANEL) {
                int width = fkp_gemm_width(job, row / FKP_GEMM_PANEL);
                const float *panel = job->panels + row * job->steps;
                if (FKP_GEMM_PAIRS && job->pairs) fkp_gemm_panel_block(job, true, panel, width, block, sums);
                else fkp_gemm_panel_block(job, false, panel, width, block, sums);
                fkp_gemm_store(job, sums, width, row, column);
            }
        }
    }
}

/* Runs the product; job->parts, panels and blocks are set here. m and n are at least 1. */
static inline fk_status fkp_gemm(fk_ctx *ctx, fkp_gemm_job *job)
{
    if (job->output_dtype == FK_NONE) job->output_dtype = job->input_dtype;
    int64_t panels = (job->m + FKP_GEMM_PANEL - 1) / FKP_GEMM_PANEL, blocks = (job->n + FKP_GEMM_BLOCK - 1) / FKP_GEMM_BLOCK;
    job->pairs = FKP_GEMM_PAIRS && job->input_dtype == FK_BF16 && job->weight_dtype == FK_BF16 && job->k > 0 && fkp_cpu_multiplies_bf16();
    job->steps = job->pairs ? (job->k + 1) / 2 : job->k;
    job->parts = fk_ctx_threads(ctx) < blocks ? fk_ctx_threads(ctx) : (int)blocks;
    job->panels = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(panels * FKP_GEMM_PANEL * job->steps + 1));
    job->blocks = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(job->parts * fkp_gemm_block_floats(job->steps) + 1));
    if (!job->panels || !job->blocks) return fk_ctx_status(ctx);
    fkp_parallel_for(fk_ctx_threads(ctx), panels, 1, fkp_gemm_pack_part, job);
    fkp_parallel_for(job->parts, job->parts, 1, fkp_gemm_part, job);
    return FK_OK;
}

#endif
