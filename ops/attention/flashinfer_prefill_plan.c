/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of attention of new tokens, the specification: integers only, ready for any device. */
#include "ops/attention/flashinfer_plan_host.h"

static fk_status reference(fk_ctx *ctx, const fk_flashinfer_prefill_plan_args *a)
{
    plan_call c = plan_call_prefill(a);
    return plan_make(ctx, &c);
}

static fk_status check(fk_ctx *ctx, const fk_flashinfer_prefill_plan_args *a)
{
    plan_call c = plan_call_prefill(a);
    return plan_check(ctx, &c);
}

static void fill(fk_random *random, const fk_flashinfer_prefill_plan_args *a)
{
    plan_call c = plan_call_prefill(a);
    plan_fill(random, &c);
    for (int64_t r = 0, at = 0; r < a->qo_indptr->shape[0]; r++) {
        fkp_set_int(a->qo_indptr, fkp_at1(a->qo_indptr, r), at);
        at += fkp_random_below(random, 40) * (fkp_random_below(random, 4) ? 1 : 30);
    }
}

static const char *const cases[] = {
    "B=0 P=0 num_qo_heads=8 num_kv_heads=2 head_dim_qk=64 page_size=16 logits_soft_cap=0 sm_scale=0",
    "B=1 P=1 num_qo_heads=1 num_kv_heads=1 head_dim_qk=1 page_size=1 logits_soft_cap=0 sm_scale=0",
    "B=1 P=300 num_qo_heads=32 num_kv_heads=8 head_dim_qk=128 page_size=16 causal=True logits_soft_cap=0 sm_scale=0",
    "B=7 P=90 num_qo_heads=9 num_kv_heads=3 head_dim_qk=64 page_size=16 causal=True window_left=100 logits_soft_cap=30 sm_scale=0.1",
    "B=40 P=700 num_qo_heads=64 num_kv_heads=64 head_dim_qk=128 page_size=64 causal=True logits_soft_cap=0 sm_scale=0",
    "B=270 P=900 num_qo_heads=128 num_kv_heads=1 head_dim_qk=128 page_size=32 logits_soft_cap=0 sm_scale=0",
    "B=2 P=500 num_qo_heads=4 num_kv_heads=4 head_dim_qk=64 page_size=16 disable_split_kv=True logits_soft_cap=0 sm_scale=0",
    NULL};

#define FK_OP_DEF "attention/flashinfer_prefill_plan.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
