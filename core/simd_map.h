/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions on the CPU: one pass over rows, or over the whole tensor where both are contiguous. The function
 * is inlined into the loop of each dtype; the last elements of a row take a vector that zeros fill up. */
#ifndef FK_CORE_SIMD_MAP_H
#define FK_CORE_SIMD_MAP_H

#include "core/simd.h"
#include "core/threads.h"

#define FKP_MAP_GRAIN_ELEMENTS 8192 /* below this a second thread costs more than it saves */

typedef struct fkp_map {
    const fk_tensor *out, *in;
    int64_t rows, cols, in_stride, out_stride;
    bool flat; /* one row: split by elements */
} fkp_map;

/* The elements of a call; false when there are none. Precondition: both have rows. */
static inline bool fkp_map_init(fkp_map *m, const fk_tensor *out, const fk_tensor *in)
{
    *m = (fkp_map){.out = out, .in = in, .in_stride = fk_row_stride(in), .out_stride = fk_row_stride(out)};
    fk_rows_cols(in, &m->rows, &m->cols);
    m->flat = m->rows == 1 || (fk_tensor_is_contiguous(in) && fk_tensor_is_contiguous(out));
    if (m->flat) {
        m->cols *= m->rows;
        m->rows = 1;
    }
    return m->rows > 0 && m->cols > 0;
}

static inline bool fkp_map_supports(const fk_tensor *out, const fk_tensor *in)
{
    return fk_tensor_has_rows(in) && fk_tensor_has_rows(out);
}

static inline void fkp_map_run(fk_ctx *ctx, const fkp_map *m, fkp_range_fn part)
{
    int64_t count = m->flat ? m->cols : m->rows, grain = m->flat ? FKP_MAP_GRAIN_ELEMENTS : 1 + FKP_MAP_GRAIN_ELEMENTS / m->cols;
    fkp_parallel_for(fk_ctx_threads(ctx), count, grain, part, (void *)(uintptr_t)m);
}

static inline __attribute__((always_inline)) void fkp_map_span(const fkp_map *m, fk_dtype dtype, int64_t out, int64_t in, int64_t n,
                                                               fkp_vf (*function)(fkp_vf))
{
    int64_t i = 0;
    for (; i + FKP_LANES <= n; i += FKP_LANES)
        fkp_v_store(m->out->data, dtype, out + i, function(fkp_v_load(m->in->data, dtype, in + i)));
    fkp_vf rest = fkp_v_set(0);
    for (int64_t k = i; k < n; k++) rest[k - i] = fkp_s_load(m->in->data, dtype, in + k);
    rest = function(rest);
    for (int64_t k = i; k < n; k++) fkp_s_store(m->out->data, dtype, out + k, rest[k - i]);
}

/* Elements [begin, end) of a flat map, rows [begin, end) of another: the body of a fkp_range_fn. */
static inline __attribute__((always_inline)) void fkp_map_part(const fkp_map *m, int64_t begin, int64_t end, fkp_vf (*function)(fkp_vf))
{
    fk_dtype dtype = m->in->dtype;
    int64_t n = m->flat ? end - begin : m->cols, first = m->flat ? 0 : begin, last = m->flat ? 1 : end;
    for (int64_t r = first; r < last; r++) {
        int64_t in = r * m->in_stride + (m->flat ? begin : 0), out = r * m->out_stride + (m->flat ? begin : 0);
        if (dtype == FK_F32) fkp_map_span(m, FK_F32, out, in, n, function);
        else if (dtype == FK_BF16) fkp_map_span(m, FK_BF16, out, in, n, function);
        else fkp_map_span(m, FK_F16, out, in, n, function);
    }
}

#endif
