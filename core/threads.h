/* SPDX-License-Identifier: Apache-2.0 */
/* The process's pool of worker threads. Work is split statically, so that results do not depend on timing; the caller is
 * worker 0. Waiting workers spin briefly, then sleep. */
#ifndef FK_CORE_THREADS_H
#define FK_CORE_THREADS_H

#include <stdint.h>

/* Processors this process may run on (affinity mask), at most FKP_MAX_THREADS. */
int fkp_threads_available(void);

#define FKP_MAX_THREADS 64

/* Runs fn(user, begin, end) over [0, count) split into contiguous parts, one a thread; parts smaller than `grain` are not
 * split further. `threads` is the most to use. Returns when all are done. Calls from inside a part run in place. */
typedef void (*fkp_range_fn)(void *user, int64_t begin, int64_t end);
void fkp_parallel_for(int threads, int64_t count, int64_t grain, fkp_range_fn fn, void *user);

#endif
