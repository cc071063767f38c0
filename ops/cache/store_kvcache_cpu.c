/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache on the CPU, slots of a block one after another. */
#include "ops/cache/store_kvcache_cpu.h"

FK_CPU_OP_IF(store_kvcache, store_kvcache_cpu, store_kvcache_supports);
