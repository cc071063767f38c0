/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache on the CPU, slots of a head one after another. */
#include "ops/cache/store_kvcache_cpu.h"
#include "ops/cache/store_kvcache_hnd.h"

static fk_status run(fk_ctx *ctx, const fk_store_kvcache_hnd_args *a)
{
    store_kvcache_view view;
    return store_kvcache_cpu(ctx, store_kvcache_view_of(a, &view));
}

static bool supports(const fk_store_kvcache_hnd_args *a)
{
    store_kvcache_view view;
    return store_kvcache_supports(store_kvcache_view_of(a, &view));
}

FK_CPU_OP_IF(store_kvcache_hnd, run, supports);
