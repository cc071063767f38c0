/* SPDX-License-Identifier: Apache-2.0 */
/* One case being judged: the judge's image of all slots, fresh values for it, and the checks of what comes back. */
#ifndef FK_BENCH_TRIAL_H
#define FK_BENCH_TRIAL_H

#include <fk/ctx.h>

#include "bench/judge.h"
#include "bench/side.h"

#define FKP_ROUNDS 3 /* of correctness, before anything is timed: a slot each, where memory holds so many */

/* How values are drawn. */
typedef enum fkp_value_kind {
    FKP_VALUES_CAPTURED, /* as captured where they were kept, else normal */
    FKP_VALUES_NORMAL,
    FKP_VALUES_OUTLIERS, /* normal with some large values and zeros among them */
} fkp_value_kind;

typedef struct fkp_trial {
    const fkp_judge_options *options;
    const fkp_case *c;
    fkp_record *record;
    fkp_side *baseline, *candidate;
    fk_ctx *reference; /* references only, on the CPU */
    fk_random random;
    fkp_layout layout;
    char *image;     /* what the memory of both sides should hold; written elements are poison or their old values */
    float *pool;     /* normal values to draw blocks from */
    bool *filled;    /* [num_fields]: op->fill writes it */
    double fill_s;   /* cost of one op->fill */
    char *golden;    /* memory of golden tensors */
    fk_tensor *golden_tensors; /* [num_fields], written fields contiguous, the others views of the image */
    void *golden_args;
    int golden_slot; /* slot whose golden values stand there, -1 */
    double golden_s; /* cost of the last golden computation */
    char *outputs[2]; /* contiguous copies of what the sides wrote: baseline, candidate; offsets as in golden */
    size_t *output_offsets; /* [num_fields] */
} fkp_trial;

/* Lays out memory for many slots, or for those of the rounds when nothing is timed; canaries in place. */
fk_status fkp_trial_init(fkp_trial *t, const fkp_judge_options *options, const fkp_case *c, fkp_side *baseline,
                         fkp_side *candidate, fk_ctx *reference, uint64_t seed, fkp_record *record);
void fkp_trial_deinit(fkp_trial *t);
/* First values of all slots (bench/values.c); part of init. */
fk_status fkp_trial_init_values(fkp_trial *t);

/* Fresh values and poison in a slot of the image. */
void fkp_trial_prepare(fkp_trial *t, int slot, fkp_value_kind kind);
/* The image of everything, or of one slot (and what slots share), to a side. */
fkp_case_status fkp_trial_write_all(fkp_trial *t, fkp_side *side);
fkp_case_status fkp_trial_write_slot(fkp_trial *t, fkp_side *side, int slot);

/* After a call: copies out what the side wrote in a slot and makes sure that nothing else has changed there. */
fkp_case_status fkp_trial_collect(fkp_trial *t, fkp_side *side, int slot);
/* The same for what slots share. */
fkp_case_status fkp_trial_check_shared(fkp_trial *t, fkp_side *side);
/* Computes the golden result of a slot; NOT_RUN when the reference itself fails. */
fkp_case_status fkp_trial_golden(fkp_trial *t, int slot);
/* Compares the collected outputs of a side with the golden; errors and mismatches go to the record. `side` is the one
 * collected last. */
fkp_case_status fkp_trial_compare(fkp_trial *t, const fkp_side *side);
/* True when both sides' collected outputs agree within the tolerance. */
bool fkp_trial_sides_agree(const fkp_trial *t);

/* The timed part (bench/timing.c): alternated batches until the interval is narrow or the budget spent. */
fkp_case_status fkp_trial_time(fkp_trial *t);

#endif
