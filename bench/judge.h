/* SPDX-License-Identifier: Apache-2.0 */
/* The judge: decides cases of one operator at a time, with a baseline and a candidate in runner processes of their own. It
 * owns buffers, values, golden results and the verdict. */
#ifndef FK_BENCH_JUDGE_H
#define FK_BENCH_JUDGE_H

#include <fk/ctx.h>

#include "bench/record.h"

typedef struct fkp_judge_options {
    fk_device device;
    int threads;             /* of each runner; 0: all */
    double time_budget_s;    /* of timing one case */
    double timeout_s;        /* of one request to a runner; what is slow by nature gets more */
    uint64_t seed;           /* 0: a new secret one for every case */
    fk_roofline roofline;    /* of the device; zeros: unknown */
    bool timing;             /* false: correctness alone */
    bool (*interrupted)(void); /* NULL: never */
} fkp_judge_options;

typedef struct fkp_judge fkp_judge;

fk_status fkp_judge_create(const fkp_judge_options *options, fkp_judge **out);
void fkp_judge_destroy(fkp_judge *judge);

/* From now on cases of `op` are judged: `library` is the candidate's path, NULL for the baseline against itself.
 * `pin` names the baseline implementation; NULL for the best. */
fk_status fkp_judge_begin(fkp_judge *judge, const fk_op *op, const char *library, const char *pin);
/* Judges one case; always fills the record. An interrupted case is NOT_RUN. */
void fkp_judge_case(fkp_judge *judge, const fkp_case *c, fkp_record *record);
/* Whether the operator accepts the case (its own checks), for generated cases. */
bool fkp_judge_accepts(fkp_judge *judge, const fkp_case *c);

#endif
