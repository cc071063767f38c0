/* SPDX-License-Identifier: Apache-2.0 */
/* Argmax on the CPU: the maximum of blocks by vectors, then the place inside the first block that has the largest. Of equal
 * values the lowest index; NaN counts as larger than all. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd.h"
#include "core/threads.h"

#define BLOCK 1024 /* a multiple of the lanes; scanned twice when it holds the maximum */
#define GRAIN_ELEMENTS 32768 /* below this a second thread costs more than it saves */

/* Maximum of n elements from `at` on; NaN when there is one. */
static float block_max(const fk_tensor *t, int64_t at, int64_t n)
{
    fkp_vf largest = fkp_v_set(-INFINITY);
    fkp_vi nan = {0};
    int64_t i = 0;
    for (; i + FKP_LANES <= n; i += FKP_LANES) {
        fkp_vf x = fkp_v_load(t->data, t->dtype, at + i);
        nan |= x != x;
        largest = fkp_v_larger(x, largest);
    }
    float max = fkp_v_max(largest);
    for (int k = 0; k < FKP_LANES; k++)
        if (nan[k]) return NAN;
    for (; i < n; i++) {
        float x = fkp_s_load(t->data, t->dtype, at + i);
        if (isnan(x)) return NAN;
        if (x > max) max = x;
    }
    return max;
}

static int64_t row_argmax(const fk_tensor *t, int64_t at, int64_t n)
{
    int64_t block = 0;
    float largest = -INFINITY;
    for (int64_t i = 0; i < n && !isnan(largest); i += BLOCK) {
        float max = block_max(t, at + i, n - i < BLOCK ? n - i : BLOCK);
        if (!(max > largest) && !isnan(max)) continue;
        largest = max;
        block = i;
    }
    for (int64_t i = block; i < n; i++) {
        float x = fkp_s_load(t->data, t->dtype, at + i);
        if (isnan(largest) ? isnan(x) : x == largest) return i;
    }
    return 0; /* not reached: the block holds its maximum */
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_argmax_args *a = user;
    int64_t *out = a->output->data;
    for (int64_t b = begin; b < end; b++)
        out[b * a->output->strides[0]] = row_argmax(a->self, b * a->self->strides[0], a->self->shape[1]);
}

static fk_status run(fk_ctx *ctx, const fk_argmax_args *a)
{
    int64_t rows = a->self->shape[0], columns = a->self->shape[1];
    if (rows == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), rows, 1 + GRAIN_ELEMENTS / columns, rows_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_argmax_args *a)
{
    return fk_tensor_has_rows(a->self);
}

FK_CPU_OP_IF(argmax, run, supports);
