/* SPDX-License-Identifier: Apache-2.0 */
/* A folder's candidates in this process: compiled where they are sources, opened, and stood at the doors of engines. For
 * code that bench has passed; it shares our process here. */
#ifndef FK_BENCH_CANDIDATE_SET_H
#define FK_BENCH_CANDIDATE_SET_H

#include <fk/ctx.h>

#include "core/candidate.h"

typedef struct fkp_candidate_set {
    fk_candidate **items; /* [count] */
    const fk_op **ops;
    fk_impl *impls;       /* for the door: the candidates', which also note who runs */
    int count;
} fkp_candidate_set;

/* `path` is a folder or one file. A candidate that does not compile or load is named: FK_ERROR_CANDIDATE with the
 * compiler's first lines. */
fk_status fkp_candidate_set_open(const char *path, fk_device_type device, const char *cache_dir, bool (*stop)(void),
                                 fkp_candidate_set *out);
void fkp_candidate_set_close(fkp_candidate_set *set);
/* Those that are not in `without` (NULL: all). The set must outlive the context. */
fk_status fkp_candidate_set_install(const fkp_candidate_set *set, const bool *without, fk_ctx *ctx);
/* What goes on in this process's candidates, for another one that watches it through shared memory. */
typedef struct fkp_candidate_watch {
    volatile int32_t running; /* operator (its index) whose candidate's code runs, -1 outside of candidates */
    volatile int32_t last;    /* the last one that ran, -1: none yet */
    volatile uint64_t moves;  /* grows with every beginning and end */
    volatile bool judged;     /* candidates are called now and then: they should not stop */
} fkp_candidate_watch;
void fkp_candidate_set_watch(fkp_candidate_watch *watch);
/* A run with (true) or without candidates begins. */
void fkp_candidate_set_judged(bool judged);

#endif
