/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models, baseline against candidates: the same requests on two engines of one model, in one process. Speed from
 * alternated runs; tokens compared request by request, and where they part, the logits of both sides under the baseline's
 * continuation tell a near tie from an error. For candidates that bench has passed: they share our process. */
#ifndef FK_BENCH_EVAL_H
#define FK_BENCH_EVAL_H

#include <fk/model.h>

#include "bench/candidate_set.h"
#include "bench/record.h"
#include "bench/scenario.h"
#include "bench/statistics.h"

typedef struct fkp_eval_options {
    int threads;
    int min_pairs, max_pairs; /* runs of each side; even */
    double time_budget_s;     /* no further pairs after this long */
    bool (*interrupted)(void);
    /* What is going on, for a progress bar; may be NULL. */
    void (*progress)(void *user, const char *what, int done, int total);
    void *user;
} fkp_eval_options;

/* Medians over the runs of one side. */
typedef struct fkp_eval_side {
    double tok_s, req_s;
    double ttft_ms, tpot_ms; /* medians over the requests; NaN for encoders */
} fkp_eval_side;

/* Where a request's answers part first. Gaps are between the two tokens in question, after the baseline's continuation. */
typedef struct fkp_divergence {
    int64_t request, step;
    int32_t baseline_id, candidate_id;
    double baseline_gap;  /* baseline's logit of its own token minus that of the candidate's */
    double candidate_gap; /* candidate's logit of its own token minus that of the baseline's */
    double threshold;     /* a near tie has both gaps below it */
    bool near_tie;
} fkp_divergence;

/* What stands in place of tokens for models that have none: the worst value found, and the least that is allowed. */
typedef struct fkp_metric {
    const char *name; /* "cosine"; NULL: tokens are compared */
    double value, threshold;
} fkp_metric;

typedef struct fkp_eval {
    fkp_case_status status;
    char detail[2048];
    fkp_metric metric;
    bool tokens_equal;                /* with a metric: all requests are within the threshold */
    int64_t requests, equal_requests; /* requests whose answers are the same in every run */
    int64_t tokens;                   /* of one run: answered, or encoded */
    int64_t near_ties;                /* steps at which the candidate would go another way, all of them ties */
    bool diverged;
    fkp_divergence first;             /* the first error when there is one, else the first near tie */
    int64_t *reached;                 /* [candidates->count] calls of one run; 0 is a failure: nothing was judged */
    int64_t *calls;                   /* [candidates->count] of the operator in that run, whatever computed them */
    const char **covered_by;          /* [candidates->count] operator whose candidate stands above it; reached is then of a run
                                         without that one; NULL else */
    fkp_eval_side baseline, candidate;
    fkp_ratio factor;                 /* time of the baseline over that of the candidates */
    fkp_verdict verdict;
    int pairs;
    double seconds;
} fkp_eval;

/* Judges; `candidates` without any: the baseline against itself. A broken candidate is FK_OK with its status; other failures
 * are errors. */
fk_status fkp_eval_run(const fk_model *model, const fkp_requests *requests, const fkp_candidate_set *candidates,
                       const fkp_eval_options *options, fkp_eval *out);
void fkp_eval_deinit(fkp_eval *eval);

#endif
