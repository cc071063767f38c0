/* SPDX-License-Identifier: Apache-2.0 */
/* How row norms divide rows over threads: a block reads its rows once, VPT packs of 16 bytes a thread and row, and keeps them
 * in registers. With many rows the memory must stay busy: few threads a row with several packs each, and two rows a block where
 * registers allow, all loaded before the first is reduced. With few rows the latency counts: many threads, one pack each. Rows of
 * up to 32 packs take one warp each, several to a block. Rows that are not packs take a plain kernel. */
#ifndef FK_CORE_CUDA_NORM_H
#define FK_CORE_CUDA_NORM_H

#include "core/cuda_op.h"

#define FKP_NORM_WARP_ROWS 8     /* rows side by side in a block where one warp holds a row */
#define FKP_NORM_MANY_ROWS 1024  /* from here bandwidth counts: about 8 rows a multiprocessor */

typedef struct fkp_norm_plan {
    int64_t rows, d;
    int packs_per_thread; /* 1, 2, 4 or 8; 0: a row is no packs, or too many */
    dim3 block;           /* x: threads a row; y: rows side by side, more than 1 only where x is 32 */
} fkp_norm_plan;

/* Largest x * y of a kernel with that many packs a thread. */
constexpr int fkp_norm_max_threads(int packs_per_thread)
{
    return packs_per_thread <= 2 ? 512 : packs_per_thread == 4 ? 128 : 256;
}

/* Whether each row (or the parameter, or nothing) begins at a pack of that dtype. */
static inline bool fkp_norm_packs(const fk_tensor *t, fk_dtype dtype)
{
    return !t || (t->dtype == dtype && fkp_cuda_aligned16(t->data, fk_row_stride(t) * fk_dtype_bits(dtype) / 8));
}

/* in, out [rows, d]; parameters [d] or NULL. */
static inline fkp_norm_plan fkp_norm_plan_for(const fk_tensor *in, const fk_tensor *out, const fk_tensor *weight, const fk_tensor *bias)
{
    fkp_norm_plan plan = {.rows = 0, .d = 0, .packs_per_thread = 0, .block = dim3(1, 1, 1)};
    fk_rows_cols(in, &plan.rows, &plan.d);
    const int64_t row_bytes = plan.d * fk_dtype_bits(in->dtype) / 8, packs = row_bytes / 16;
    if (row_bytes % 16 != 0 || packs == 0 || packs > 8 * fkp_norm_max_threads(8)) return plan;
    if (!fkp_norm_packs(in, in->dtype) || !fkp_norm_packs(out, in->dtype) || !fkp_norm_packs(weight, in->dtype) ||
        !fkp_norm_packs(bias, in->dtype))
        return plan;
    plan.packs_per_thread = packs <= 128 ? 1
                            : plan.rows >= FKP_NORM_MANY_ROWS ? (packs <= 4 * fkp_norm_max_threads(4) ? 4 : 8)
                            : packs <= fkp_norm_max_threads(1) ? 1
                            : packs <= 2 * fkp_norm_max_threads(2) ? 2
                                                                   : 8;
    unsigned threads = (unsigned)((packs + plan.packs_per_thread - 1) / plan.packs_per_thread + 31) / 32 * 32;
    plan.block = dim3(threads, threads == 32 ? FKP_NORM_WARP_ROWS : 1, 1);
    return plan;
}

/* Blocks for rows when a block holds `block_rows` of them. */
static inline unsigned fkp_norm_blocks(int64_t rows, int64_t block_rows)
{
    return (unsigned)((rows + block_rows - 1) / block_rows);
}

/* Launches as planned. L is a type with the launches of one operator:
 *   template <typename T, int VPT, int ROWS> static void packed(const fkp_norm_plan *, cudaStream_t, const A *)
 *   template <typename T> static void plain(const fkp_norm_plan *, cudaStream_t, const A *)
 * where VPT is packs_per_thread and ROWS the rows that a thread may take at once. */
template <typename L, typename A>
static inline fk_status fkp_norm_launch(fk_ctx *ctx, cudaStream_t stream, const A *a, const fkp_norm_plan *plan, fk_dtype dtype,
                                        const char *op)
{
    if (plan->rows == 0 || plan->d == 0) return FK_OK;
    FK_DISPATCH_FLOAT(dtype, T, {
        if (plan->packs_per_thread == 1) L::template packed<T, 1, 1>(plan, stream, a);
        else if (plan->packs_per_thread == 2) L::template packed<T, 2, 1>(plan, stream, a);
        else if (plan->packs_per_thread == 4) L::template packed<T, 4, 2>(plan, stream, a);
        else if (plan->packs_per_thread == 8) L::template packed<T, 8, 1>(plan, stream, a);
        else L::template plain<T>(plan, stream, a);
    });
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

#endif
