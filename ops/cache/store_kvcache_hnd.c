/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache, HND layout: that of store_kvcache on a view. */
#include "ops/cache/store_kvcache_hnd.h"
#include "ops/cache/store_kvcache_reference.h"

static fk_status reference(fk_ctx *ctx, const fk_store_kvcache_hnd_args *a)
{
    store_kvcache_view view;
    return store_kvcache_reference(ctx, store_kvcache_view_of(a, &view));
}

static fk_status check(fk_ctx *ctx, const fk_store_kvcache_hnd_args *a)
{
    store_kvcache_view view;
    return store_kvcache_check(ctx, store_kvcache_view_of(a, &view));
}

static fk_cost cost(const fk_store_kvcache_hnd_args *a)
{
    store_kvcache_view view;
    return store_kvcache_cost(store_kvcache_view_of(a, &view));
}

static void fill(fk_random *random, const fk_store_kvcache_hnd_args *a)
{
    store_kvcache_view view;
    store_kvcache_fill(random, store_kvcache_view_of(a, &view));
}

static const char *const cases[] = {"T=0 M=0 K=1 E=8 N=2 S=4",     "T=1 M=1 K=1 E=1 N=1 S=1",    "T=5 M=5 K=3 E=15 N=4 S=16",
                                    "T=9 M=7 K=2 E=64 N=3 S=16",   "T=33 M=33 K=3 E=64 N=5 S=8", "T=17 M=17 K=8 E=128 N=6 S=16",
                                    NULL};

#define FK_OP_DEF "cache/store_kvcache_hnd.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
