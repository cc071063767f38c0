/* SPDX-License-Identifier: Apache-2.0 */
/* How row norms divide rows over threads: a block holds its rows in registers, VPT packs of 16 bytes a
 * thread, so that a row is read once. Rows of up to 32 packs take one warp each, several to a block; longer
 * ones take a block each. */
#ifndef FK_CORE_CUDA_NORM_H
#define FK_CORE_CUDA_NORM_H

#include "core/cuda_op.h"

#define FKP_NORM_MAX_THREADS 512
#define FKP_NORM_MAX_PACKS_PER_THREAD 8 /* then with at most FKP_NORM_WIDE_THREADS: more registers a thread  \
                                         */
#define FKP_NORM_WIDE_THREADS 256
#define FKP_NORM_WARP_ROWS 8 /* rows a block where one warp holds a row */

typedef struct fkp_norm_plan {
    int packs_per_thread; /* 1, 2 or 8; 0: the row does not fit */
    dim3 block;           /* x: threads a row; y: rows a block, more than 1 only where x is 32 */
} fkp_norm_plan;

static inline fkp_norm_plan fkp_norm_plan_for(int64_t packs)
{
    const int64_t limit = (int64_t)FKP_NORM_WIDE_THREADS * FKP_NORM_MAX_PACKS_PER_THREAD;
    if (packs <= 0 || packs > limit) return fkp_norm_plan{0, dim3(1, 1, 1)};
    int per_thread = packs <= 128 ? 1 : packs <= 2 * FKP_NORM_MAX_THREADS ? 2 : FKP_NORM_MAX_PACKS_PER_THREAD;
    unsigned threads = (unsigned)((packs + per_thread - 1) / per_thread + 31) / 32 * 32;
    return fkp_norm_plan{per_thread, dim3(threads, threads == 32 ? FKP_NORM_WARP_ROWS : 1, 1)};
}

/* Largest block of a kernel with that many packs a thread. */
constexpr int fkp_norm_max_threads(int packs_per_thread)
{
    return packs_per_thread > 2 ? FKP_NORM_WIDE_THREADS : FKP_NORM_MAX_THREADS;
}

/* As many blocks as the device holds at once, each with every so many-th row; fewer when there are fewer
 * rows. */
static inline unsigned fkp_norm_grid(const void *kernel, const fkp_norm_plan *plan, int64_t rows)
{
    int threads = (int)(plan->block.x * plan->block.y);
    int64_t wanted = (rows + plan->block.y - 1) / plan->block.y;
    int64_t resident = (int64_t)fkp_cuda_sm_count() * fkp_cuda_blocks_per_sm(kernel, threads, 0);
    return (unsigned)(wanted < resident ? wanted : resident);
}

#endif
