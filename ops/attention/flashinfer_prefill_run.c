/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of new tokens over listed pages, the specification: scores and probabilities in double, one rounding at the end. */
#include "ops/attention/flashinfer_host.h"

static fk_status reference(fk_ctx *ctx, const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    return flashinfer_reference(ctx, &c);
}

static fk_status check(fk_ctx *ctx, const fk_flashinfer_prefill_run_args *a)
{
    return flashinfer_check(ctx, a->q, a->paged_kv_cache, a->kv_layout);
}

static fk_cost cost(const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    return flashinfer_cost(&c);
}

static void fill(fk_random *random, const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    flashinfer_fill(random, &c, a->paged_kv_cache, false);
}

static const char *const cases[] = {
    "T=0 B=0 H=2 N=1 C=4 D=1 E=8 P=0 kv_layout=NHD",
    "T=1 B=1 H=1 N=1 C=1 D=1 E=1 P=1 kv_layout=NHD",
    "T=17 B=4 H=4 N=12 C=16 D=2 E=64 P=12 kv_layout=NHD",
    "T=33 B=3 H=9 N=9 C=3 D=16 E=64 P=9 kv_layout=HND",
    "T=66 B=2 H=8 N=20 C=16 D=2 E=128 P=18 kv_layout=NHD",
    "T=12 B=2 H=4 N=90 C=2 D=8 E=15 P=80 kv_layout=HND",
    "T=3 B=1 H=6 N=60 C=16 D=1 E=80 P=50 kv_layout=NHD",
    "T=21 B=5 H=4 N=10 C=1 D=16 E=32 P=9 kv_layout=HND",
    NULL};

#define FK_OP_DEF "attention/flashinfer_prefill_run.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
