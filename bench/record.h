/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of one case. Every planned case ends in exactly one record. */
#ifndef FK_BENCH_RECORD_H
#define FK_BENCH_RECORD_H

#include <jansson.h>

#include "bench/cases.h"
#include "bench/statistics.h"

typedef enum fkp_case_status {
    FKP_PASSED,
    FKP_INCORRECT_NUMERICAL,
    FKP_INCORRECT_SHAPE,
    FKP_INCORRECT_DTYPE,
    FKP_RUNTIME_ERROR,
    FKP_REWARD_HACK,
    FKP_SKIPPED,
    FKP_COMPILE_ERROR,
    FKP_TIMEOUT,
    FKP_CRASHED,
    FKP_NOT_RUN,
    FKP_IMPLAUSIBLE,
} fkp_case_status;

const char *fkp_case_status_name(fkp_case_status status);
/* SKIPPED and NOT_RUN are no judgement of the candidate; PASSED is none against it. */
bool fkp_case_status_failed(fkp_case_status status);

#define FKP_MAX_MISMATCHES 5

typedef struct fkp_mismatch {
    const char *field;
    int64_t index[FK_MAX_NDIM];
    int ndim;
    double expected, found, allowed; /* allowed difference */
    bool unwritten; /* the poison still stands there */
} fkp_mismatch;

typedef struct fkp_record {
    fkp_case_status status;
    fkp_verdict verdict;
    fkp_ratio speedup;
    double candidate_ms, baseline_ms; /* one call; means of the middle half of all samples */
    double roofline_fraction;         /* floor time / candidate time; 0 when unknown */
    double copy_fraction;             /* rate of the compulsory bytes / the measured rate of a copy; 0 when unknown */
    double empty_call_ms;             /* what timing a call of nothing shows; not subtracted */
    bool compared; /* outputs of the candidate were held against the golden; without it the next three say nothing */
    double max_abs_error, max_rel_error, matched_ratio;
    double baseline_max_abs_error; /* the baseline's own error against the golden */
    int rounds, pairs, timed_calls, timed_golden; /* timed outputs all compared; so many with the golden itself */
    int slots, calls_per_sample;
    int processes;     /* pairs of runners that measured */
    bool replayed;     /* calls were timed as replays of a graph */
    bool launch_bound; /* a call is no longer than starting a kernel */
    fkp_mismatch mismatches[FKP_MAX_MISMATCHES];
    int num_mismatches;
    char detail[1600];
    char baseline[48]; /* implementation the candidate was compared with */
    uint64_t seed;
    double seconds; /* the judging took */
} fkp_record;

/* Sets status and detail of a case that ends here; returns the status. */
fkp_case_status fkp_record_end(fkp_record *record, fkp_case_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The fields of cli.md's `bench` row, added to `object` (made by the command line with device and environment). */
fk_status fkp_record_to_json(const fkp_record *record, const fkp_case *c, json_t *object);
/* What a summary and --resume need of a finished line. */
fk_status fkp_record_from_json(const json_t *object, fkp_record *record);

#endif
