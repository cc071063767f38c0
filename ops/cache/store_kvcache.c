/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache, NHD layout. */
#include "ops/cache/store_kvcache_reference.h"

static const char *const cases[] = {"T=0 M=0 K=1 E=8 N=2 S=4",     "T=1 M=1 K=1 E=1 N=1 S=1",    "T=5 M=5 K=3 E=15 N=4 S=16",
                                    "T=9 M=7 K=2 E=64 N=3 S=16",   "T=33 M=33 K=3 E=64 N=5 S=8", "T=17 M=17 K=8 E=128 N=6 S=16",
                                    NULL};

#define FK_OP_DEF "cache/store_kvcache.def"
#define FK_OP_REFERENCE store_kvcache_reference
#define FK_OP_CHECK store_kvcache_check
#define FK_OP_COST store_kvcache_cost
#define FK_OP_FILL store_kvcache_fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
