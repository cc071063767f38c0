/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a decode step, the specification: integers only, ready for any device. */
#include "ops/attention/flashinfer_plan_host.h"

static fk_status reference(fk_ctx *ctx, const fk_flashinfer_decode_plan_args *a)
{
    plan_call c = plan_call_decode(a);
    return plan_make(ctx, &c);
}

static fk_status check(fk_ctx *ctx, const fk_flashinfer_decode_plan_args *a)
{
    plan_call c = plan_call_decode(a);
    return plan_check(ctx, &c);
}

static void fill(fk_random *random, const fk_flashinfer_decode_plan_args *a)
{
    plan_call c = plan_call_decode(a);
    plan_fill(random, &c);
}

static const char *const cases[] = {
    "B=0 P=0 num_qo_heads=8 num_kv_heads=2 head_dim=64 page_size=16 logits_soft_cap=0 sm_scale=0",
    "B=1 P=1 num_qo_heads=1 num_kv_heads=1 head_dim=1 page_size=1 logits_soft_cap=0 sm_scale=0",
    "B=1 P=300 num_qo_heads=32 num_kv_heads=8 head_dim=128 page_size=16 logits_soft_cap=0 sm_scale=0",
    "B=5 P=70 num_qo_heads=9 num_kv_heads=3 head_dim=64 page_size=16 window_left=100 logits_soft_cap=30 sm_scale=0.1",
    "B=33 P=900 num_qo_heads=32 num_kv_heads=8 head_dim=128 page_size=64 logits_soft_cap=0 sm_scale=0",
    "B=300 P=900 num_qo_heads=128 num_kv_heads=1 head_dim=128 page_size=32 q_len_per_req=3 logits_soft_cap=0 sm_scale=0",
    "B=2 P=500 num_qo_heads=4 num_kv_heads=4 head_dim=64 page_size=16 disable_split_kv=True logits_soft_cap=0 sm_scale=0",
    NULL};

#define FK_OP_DEF "attention/flashinfer_decode_plan.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
