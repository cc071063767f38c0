/* SPDX-License-Identifier: Apache-2.0 */
/* How a case is decided: rounds of correctness on fresh values, then the timed part. */
#define _GNU_SOURCE
#include "bench/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bench/trial.h"
#include "core/seeded.h"

#define ROUNDS_BUDGET_S 5.0 /* a reference so slow gets one round */

struct fkp_judge {
    fkp_judge_options options;
    fk_backend *backend;
    fk_ctx *reference;
    const fk_op *op;
    fkp_side baseline, candidate;
    bool begun;
};

fk_status fkp_judge_create(const fkp_judge_options *options, fkp_judge **out)
{
    *out = NULL;
    fkp_judge *judge = calloc(1, sizeof *judge);
    if (!judge) return fk_fail(FK_ERROR_MEMORY, "out of memory for a judge");
    judge->options = *options;
    fk_ctx_options reference = {.device = {FK_CPU, 0}, .references_only = true};
    fk_status status = fk_backend_get(options->device, &judge->backend);
    if (status == FK_OK) status = fk_ctx_create(&reference, &judge->reference);
    if (status == FK_OK) *out = judge;
    else free(judge);
    return status;
}

static void end_sides(fkp_judge *judge)
{
    if (!judge->begun) return;
    fkp_side_deinit(&judge->baseline);
    fkp_side_deinit(&judge->candidate);
    judge->begun = false;
}

void fkp_judge_destroy(fkp_judge *judge)
{
    if (!judge) return;
    end_sides(judge);
    fk_ctx_destroy(judge->reference);
    free(judge);
}

fk_status fkp_judge_begin(fkp_judge *judge, const fk_op *op, const char *library, const char *pin)
{
    end_sides(judge);
    fkp_hello hello = {.device = judge->options.device, .threads = judge->options.threads};
    if (strlen(op->name) >= sizeof hello.op || (library && strlen(library) >= sizeof hello.candidate) ||
        (pin && strlen(pin) >= sizeof hello.pin))
        return fk_fail(FK_ERROR_INVALID, "name too long: %s", library ? library : op->name);
    judge->op = op;
    strcpy(hello.op, op->name);
    if (pin) strcpy(hello.pin, pin);
    fkp_side_init(&judge->baseline, "baseline", false, judge->backend, &hello);
    if (library) {
        strcpy(hello.candidate, library);
        hello.pin[0] = 0;
    }
    fkp_side_init(&judge->candidate, "candidate", true, judge->backend, &hello);
    judge->begun = true;
    return FK_OK;
}

/* One call of each side on the same fresh values, both against the golden. */
static fkp_case_status correctness_round(fkp_trial *t, int slot, fkp_value_kind kind)
{
    double timeout_s = t->options->timeout_s;
    fkp_trial_prepare(t, slot, kind);
    fkp_case_status result = fkp_trial_write_slot(t, t->baseline, slot);
    if (result == FKP_PASSED) result = fkp_trial_write_slot(t, t->candidate, slot);
    double start = fkp_now();
    int32_t slots[1] = {slot};
    fkp_run_head head = {.num_calls = 1, .calls_per_sample = 1};
    if (result == FKP_PASSED) result = fkp_side_run(t->baseline, &head, slots, timeout_s + 60, t->record);
    timeout_s += 50 * (fkp_now() - start);
    if (result == FKP_PASSED) result = fkp_side_run(t->candidate, &head, slots, timeout_s, t->record);
    if (result == FKP_PASSED) result = fkp_trial_collect(t, t->baseline, slot);
    if (result == FKP_PASSED) result = fkp_trial_collect(t, t->candidate, slot);
    if (result == FKP_PASSED) result = fkp_trial_check_shared(t, t->baseline);
    if (result == FKP_PASSED) result = fkp_trial_check_shared(t, t->candidate);
    if (result == FKP_PASSED) result = fkp_trial_golden(t, slot);
    if (result == FKP_PASSED) result = fkp_trial_compare(t, t->baseline);
    if (result == FKP_PASSED) result = fkp_trial_compare(t, t->candidate);
    if (result == FKP_PASSED || fkp_case_status_failed(result)) t->record->rounds++;
    return result;
}

static int64_t elements_written(const fkp_case *c)
{
    int64_t n = 0;
    for (int f = 0; f < c->op->num_fields; f++)
        if (fk_field_is_tensor(&c->op->fields[f]) && fk_field_is_written(&c->op->fields[f]) && c->tensors[f].dtype != FK_NONE)
            n += fk_tensor_numel(&c->tensors[f]);
    return n;
}

static fkp_case_status judge_trial(fkp_judge *judge, fkp_trial *t)
{
    fkp_record *record = t->record;
    fkp_case_status result = fkp_side_share(t->baseline, &t->layout, t->c, judge->options.timeout_s, record);
    if (result == FKP_PASSED) result = fkp_side_share(t->candidate, &t->layout, t->c, judge->options.timeout_s, record);
    if (result == FKP_PASSED) result = fkp_trial_write_all(t, t->baseline);
    if (result == FKP_PASSED) result = fkp_trial_write_all(t, t->candidate);
    if (result != FKP_PASSED) return result;
    snprintf(record->baseline, sizeof record->baseline, "%s", t->baseline->implementation);
    record->empty_call_ms = 1e3 * t->baseline->empty_call_s;
    record->slots = t->layout.num_slots;
    static const fkp_value_kind kinds[FKP_ROUNDS] = {FKP_VALUES_CAPTURED, FKP_VALUES_OUTLIERS, FKP_VALUES_NORMAL};
    double start = fkp_now();
    for (int r = 0; r < FKP_ROUNDS && result == FKP_PASSED; r++) {
        if (r > 0 && fkp_now() - start > ROUNDS_BUDGET_S) break;
        result = correctness_round(t, r % t->layout.num_slots, kinds[r]);
    }
    if (result != FKP_PASSED) return result;
    if (!judge->options.timing) return fkp_record_end(record, FKP_PASSED, "not timed");
    if (elements_written(t->c) == 0) return fkp_record_end(record, FKP_PASSED, "empty: nothing to time");
    return fkp_trial_time(t);
}

void fkp_judge_case(fkp_judge *judge, const fkp_case *c, fkp_record *record)
{
    *record = (fkp_record){.matched_ratio = 1, .seed = judge->options.seed};
    double start = fkp_now();
    double timeout_s = judge->options.timeout_s;
    if (judge->options.interrupted && judge->options.interrupted()) {
        fkp_record_end(record, FKP_NOT_RUN, "interrupted");
        return;
    }
    /* The candidate is loaded before there is a seed. */
    fkp_case_status result = fkp_side_start(&judge->baseline, timeout_s + 20, record);
    if (result == FKP_PASSED) result = fkp_side_start(&judge->candidate, timeout_s + 20, record);
    if (result == FKP_PASSED && !record->seed && getrandom(&record->seed, sizeof record->seed, 0) != sizeof record->seed)
        result = fkp_record_end(record, FKP_NOT_RUN, "no random numbers: %s", strerror(errno));
    if (result == FKP_PASSED) {
        fkp_trial trial;
        fk_status status = fkp_trial_init(&trial, &judge->options, c, &judge->baseline, &judge->candidate, judge->reference,
                                          fkp_mix64(record->seed ^ c->hash), record);
        if (status != FK_OK) {
            result = fkp_record_end(record, FKP_NOT_RUN, "%s", fk_error_message());
        } else {
            result = judge_trial(judge, &trial);
            fkp_trial_deinit(&trial);
        }
    }
    record->status = result;
    if (result != FKP_PASSED) record->verdict = FKP_VERDICT_NONE;
    record->seconds = fkp_now() - start;
}

bool fkp_judge_accepts(fkp_judge *judge, const fkp_case *c)
{
    if (!c->op->check) return true;
    fk_ctx_clear(judge->reference);
    fk_status status = c->op->check(judge->reference, c->args);
    fk_ctx_clear(judge->reference);
    return status == FK_OK;
}
