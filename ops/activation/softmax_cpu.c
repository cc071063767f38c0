/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax on the CPU. Along the last dim: three passes over a row, which stays in cache between them; the exponentials are
 * computed twice rather than kept. Along another dim: lanes run over the elements behind it. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd_rows.h"
#include "core/threads.h"
#include "ops/activation/softmax_dim.h"

#define GRAIN_ELEMENTS 8192 /* below this a second thread costs more than it saves */

static void row_softmax(const fk_softmax_args *a, int64_t at, int64_t n)
{
    const void *in = a->self->data;
    fk_dtype dtype = a->self->dtype;
    float largest = fkp_row_max(in, dtype, at, n), sum = 0;
    int64_t i = 0;
    fkp_vf sums = fkp_v_set(0);
    for (; i + FKP_LANES <= n; i += FKP_LANES) sums += fkp_v_exp(fkp_v_load(in, dtype, at + i) - largest);
    for (; i < n; i++) sum += fkp_s_exp(fkp_s_load(in, dtype, at + i) - largest);
    float inverse = 1 / (sum + fkp_v_sum(sums));
    for (i = 0; i + FKP_LANES <= n; i += FKP_LANES)
        fkp_v_store(a->output->data, dtype, at + i, fkp_v_exp(fkp_v_load(in, dtype, at + i) - largest) * inverse);
    for (; i < n; i++) fkp_s_store(a->output->data, dtype, at + i, fkp_s_exp(fkp_s_load(in, dtype, at + i) - largest) * inverse);
}

static inline fkp_vf load_lanes(const fk_tensor *t, int64_t at, int lanes)
{
    fkp_vf x = fkp_v_set(0);
    if (lanes == FKP_LANES) return fkp_v_load(t->data, t->dtype, at);
    for (int k = 0; k < lanes; k++) x[k] = fkp_s_load(t->data, t->dtype, at + k);
    return x;
}

/* Elements [first, first + lanes) of the inner dims, each along a column of n; lanes is FKP_LANES or less. */
static void column_softmax(const fk_softmax_args *a, int64_t first, int64_t n, int64_t inner, int lanes)
{
    fk_dtype dtype = a->self->dtype;
    fkp_vf largest = fkp_v_set(-INFINITY), sum = fkp_v_set(0), x;
    for (int64_t i = 0; i < n; i++) {
        x = load_lanes(a->self, first + i * inner, lanes);
        largest = fkp_v_larger(x, largest);
    }
    for (int64_t i = 0; i < n; i++) {
        x = load_lanes(a->self, first + i * inner, lanes);
        sum += fkp_v_exp(x - largest);
    }
    for (int64_t i = 0; i < n; i++) {
        x = load_lanes(a->self, first + i * inner, lanes);
        x = fkp_v_exp(x - largest) / sum;
        if (lanes == FKP_LANES) fkp_v_store(a->output->data, dtype, first + i * inner, x);
        else
            for (int k = 0; k < lanes; k++) fkp_s_store(a->output->data, dtype, first + i * inner + k, x[k]);
    }
}

static void part(void *user, int64_t begin, int64_t end)
{
    const fk_softmax_args *a = user;
    softmax_dim s = softmax_dim_of(a->self, a->dim);
    for (int64_t o = begin; o < end; o++) {
        int64_t at = o * s.n * s.inner;
        if (s.inner == 1) row_softmax(a, at, s.n);
        else
            for (int64_t j = 0; j < s.inner; j += FKP_LANES)
                column_softmax(a, at + j, s.n, s.inner, s.inner - j < FKP_LANES ? (int)(s.inner - j) : FKP_LANES);
    }
}

static fk_status run(fk_ctx *ctx, const fk_softmax_args *a)
{
    softmax_dim s = softmax_dim_of(a->self, a->dim);
    if (s.outer == 0 || s.n == 0 || s.inner == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), s.outer, 1 + GRAIN_ELEMENTS / (s.n * s.inner), part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_softmax_args *a)
{
    return fk_tensor_is_contiguous(a->self) && fk_tensor_is_contiguous(a->output);
}

FK_CPU_OP_IF(softmax, run, supports);
