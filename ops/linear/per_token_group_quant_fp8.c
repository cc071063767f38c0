/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising to fp8 by groups, the specification. NaN does not count for the scale and becomes fp8_min. A scale that becomes a
 * power of two counts as 1e-10 at least before it is rounded up. */
#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"
#include "ops/linear/fp8_group.h"

static fk_status reference(fk_ctx *ctx, const fk_per_token_group_quant_fp8_args *a)
{
    (void)ctx;
    for (int64_t t = 0; t < a->input->shape[0]; t++)
        for (int64_t g = 0; g < a->output_s->shape[1]; g++) {
            float largest = 0;
            for (int64_t i = g * a->group_size; i < (g + 1) * a->group_size; i++)
                largest = fmaxf(largest, fabsf((float)fk_load_element(fkp_at2(a->input, t, i), a->input->dtype)));
            float scale = fp8_scale(largest, a->eps, a->fp8_max, a->scale_ue8m0);
            fk_store_element(fkp_at2(a->output_s, t, g), FK_F32, (double)scale);
            for (int64_t i = g * a->group_size; i < (g + 1) * a->group_size; i++) {
                float x = (float)fk_load_element(fkp_at2(a->input, t, i), a->input->dtype);
                fk_store_element(fkp_at2(a->output_q, t, i), FK_F8_E4M3, (double)fp8_scaled(x, scale, a->fp8_min, a->fp8_max));
            }
        }
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_per_token_group_quant_fp8_args *a)
{
    if (a->group_size < 1 || a->input->shape[1] % a->group_size != 0)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "rows of %lld numbers are no multiple of group_size %lld", (long long)a->input->shape[1],
                           (long long)a->group_size);
    if (!(a->eps > 0) || !(a->fp8_max > 0) || a->fp8_max > FP8_MAX || !(a->fp8_min < 0) || a->fp8_min < -FP8_MAX)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "eps %g, fp8_min %g, fp8_max %g: wanted positive, in [-448, 0), in (0, 448]",
                           (double)a->eps, (double)a->fp8_min, (double)a->fp8_max);
    return FK_OK;
}

/* Groups of different sizes, so that their scales differ. */
static void fill(fk_random *random, const fk_per_token_group_quant_fp8_args *a)
{
    for (int64_t t = 0; t < a->input->shape[0]; t++)
        for (int64_t first = 0; first < a->input->shape[1]; first += a->group_size) {
            int power = (int)fkp_random_below(random, 8) - 5;
            for (int64_t i = first; i < first + a->group_size; i++) {
                void *element = fkp_at2(a->input, t, i);
                fk_store_element(element, a->input->dtype, ldexp(fk_load_element(element, a->input->dtype), power));
            }
        }
}

#define RANGE " eps=1e-10 fp8_min=-448 fp8_max=448"
static const char *const cases[] = {
    "T=0 D=128 group_size=128 scale_ue8m0=False" RANGE, "T=1 D=1 group_size=1 scale_ue8m0=False" RANGE,
    "T=3 D=128 group_size=128 scale_ue8m0=False" RANGE, "T=5 D=384 group_size=128 scale_ue8m0=True" RANGE,
    "T=7 D=130 group_size=65 scale_ue8m0=False" RANGE,  "T=4 D=1536 group_size=64 scale_ue8m0=True" RANGE,
    "T=6 D=21 group_size=7 scale_ue8m0=True" RANGE,     "T=4 D=512 group_size=256 scale_ue8m0=False eps=0.25 fp8_min=-240 fp8_max=240",
    NULL};

#define FK_OP_DEF "linear/per_token_group_quant_fp8.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
