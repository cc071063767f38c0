/* SPDX-License-Identifier: Apache-2.0 */
/* The rectifier on the CPU: one pass. */
#include "core/cpu_op.h"
#include "core/simd_map.h"

static inline fkp_vf relu(fkp_vf x)
{
    return fkp_v_select(x <= 0, fkp_v_set(0), x);
}

static void part(void *user, int64_t begin, int64_t end)
{
    fkp_map_part(user, begin, end, relu);
}

static fk_status run(fk_ctx *ctx, const fk_relu_args *a)
{
    fkp_map map;
    if (fkp_map_init(&map, a->output, a->self)) fkp_map_run(ctx, &map, part);
    return FK_OK;
}

static bool supports(const fk_relu_args *a)
{
    return fkp_map_supports(a->output, a->self);
}

FK_CPU_OP_IF(relu, run, supports);
