/* SPDX-License-Identifier: Apache-2.0 */
/* GELU on the CPU: one pass. The exact form has erfc(z) = e^(-z^2) t Q(t) with t = 1 / (1 + 0.4 z) for z >= 0, Q a
 * polynomial of degree 9 fitted for the smallest relative error (7e-9) up to z = 9.5, beyond which e^(-z^2) is 0. */
#include <string.h>

#include "core/cpu_op.h"
#include "core/simd_map.h"

static inline fkp_vf gelu(fkp_vf x)
{
    fkp_vf scaled = x * 0.707106781f, z = (fkp_vf)((fkp_vi)scaled & INT32_MAX);
    fkp_vf t = 1.0f / (1.0f + 0.4f * z), q = fkp_v_set(-0.0305953622f);
    q = q * t + 0.20347532f;
    q = q * t + -0.511723459f;
    q = q * t + 0.564756811f;
    q = q * t + -0.298869342f;
    q = q * t + 0.279909462f;
    q = q * t + 0.126945153f;
    q = q * t + 0.215510666f;
    q = q * t + 0.224880069f;
    q = q * t + 0.22571066f;
    fkp_vf half_erfc = 0.5f * t * q * fkp_v_exp(-0.5f * (x * x)); /* Phi(-|x|) */
    return x * fkp_v_select(x < 0, half_erfc, 1.0f - half_erfc);
}

static inline fkp_vf gelu_tanh(fkp_vf x)
{
    fkp_vf u = 0.797884561f * (x + 0.044715f * (x * x) * x); /* sqrt(2 / pi) */
    return x / (1.0f + fkp_v_exp(-2.0f * u));
}

static void gelu_part(void *user, int64_t begin, int64_t end)
{
    fkp_map_part(user, begin, end, gelu);
}

static void gelu_tanh_part(void *user, int64_t begin, int64_t end)
{
    fkp_map_part(user, begin, end, gelu_tanh);
}

static fk_status run(fk_ctx *ctx, const fk_gelu_args *a)
{
    fkp_map map;
    if (fkp_map_init(&map, a->output, a->self))
        fkp_map_run(ctx, &map, strcmp(a->approximate, "tanh") == 0 ? gelu_tanh_part : gelu_part);
    return FK_OK;
}

static bool supports(const fk_gelu_args *a)
{
    return fkp_map_supports(a->output, a->self);
}

FK_CPU_OP_IF(gelu, run, supports);
