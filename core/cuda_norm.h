/* SPDX-License-Identifier: Apache-2.0 */
/* How row norms divide rows over threads: a block reads its rows once, VPT packs of 16 bytes a thread and row, and keeps them
 * in registers. With many rows the memory must stay busy: few threads a row with several packs each, and two rows a block where
 * registers allow, all loaded before the first is reduced. With few rows the latency counts: many threads, one pack each. Rows of
 * up to 32 packs take one warp each, several to a block. Rows that are not packs take a plain kernel. */
#ifndef FK_CORE_CUDA_NORM_H
#define FK_CORE_CUDA_NORM_H

#include "core/cuda_op.h"
#include "core/row_place.h"

#define FKP_NORM_WARP_ROWS 8     /* rows side by side in a block where one warp holds a row */
#define FKP_NORM_MANY_ROWS 1024  /* from here bandwidth counts: about 8 rows a multiprocessor */

typedef struct fkp_norm_plan {
    int64_t rows, d;
    unsigned groups;        /* of `rows` rows each, blockIdx.y; more than 1 only where rows do not lie one distance apart */
    fkp_row_place in, out;  /* outer_stride: between rows; inner_stride: between groups */
    int packs_per_thread; /* 1, 2, 4 or 8; 0: a row is no packs, or too many */
    dim3 block;           /* x: threads a row; y: rows side by side, more than 1 only where x is 32 */
} fkp_norm_plan;

/* Largest x * y of a kernel with that many packs a thread. */
constexpr int fkp_norm_max_threads(int packs_per_thread)
{
    return packs_per_thread <= 2 ? 512 : packs_per_thread == 4 ? 128 : 256;
}

/* Whether each row (or the parameter, or nothing) begins at a pack of that dtype. */
static inline bool fkp_norm_packs(const fk_tensor *t, const fkp_row_place *place, fk_dtype dtype)
{
    const int64_t stride = place ? place->outer_stride | place->inner_stride : 0;
    return !t || (t->dtype == dtype && fkp_cuda_aligned16(t->data, stride * fk_dtype_bits(dtype) / 8));
}

/* Whether the kernels find the rows of `in` and `out`. */
static inline bool fkp_norm_supported(const fk_tensor *in, const fk_tensor *out)
{
    fkp_row_place in_place, out_place;
    return fkp_row_places(in, out, &in_place, &out_place) && in_place.inner <= 65535;
}

/* in, out [rows, d], or [rows, groups, d]; parameters [d] or NULL. */
static inline fkp_norm_plan fkp_norm_plan_for(const fk_tensor *in, const fk_tensor *out, const fk_tensor *weight, const fk_tensor *bias)
{
    fkp_norm_plan plan = {};
    int64_t rows;
    plan.block = dim3(1, 1, 1);
    fk_rows_cols(in, &rows, &plan.d);
    if (rows == 0 || !fkp_row_places(in, out, &plan.in, &plan.out)) return plan;
    plan.groups = (unsigned)plan.in.inner;
    plan.rows = rows / plan.in.inner;
    const int64_t row_bytes = plan.d * fk_dtype_bits(in->dtype) / 8, packs = row_bytes / 16;
    if (row_bytes % 16 != 0 || packs == 0 || packs > 8 * fkp_norm_max_threads(8)) return plan;
    if (!fkp_norm_packs(in, &plan.in, in->dtype) || !fkp_norm_packs(out, &plan.out, in->dtype) ||
        !fkp_norm_packs(weight, NULL, in->dtype) || !fkp_norm_packs(bias, NULL, in->dtype))
        return plan;
    plan.packs_per_thread = packs <= 128 ? 1
                            : rows >= FKP_NORM_MANY_ROWS ? (packs <= 4 * fkp_norm_max_threads(4) ? 4 : 8)
                            : packs <= fkp_norm_max_threads(1) ? 1
                            : packs <= 2 * fkp_norm_max_threads(2) ? 2
                                                                   : 8;
    unsigned threads = (unsigned)((packs + plan.packs_per_thread - 1) / plan.packs_per_thread + 31) / 32 * 32;
    plan.block = dim3(threads, threads == 32 ? FKP_NORM_WARP_ROWS : 1, 1);
    return plan;
}

/* The grid when a block holds `block_rows` rows. */
static inline dim3 fkp_norm_grid(const fkp_norm_plan *plan, int64_t block_rows)
{
    return dim3((unsigned)((plan->rows + block_rows - 1) / block_rows), plan->groups, 1);
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
