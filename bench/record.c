/* SPDX-License-Identifier: Apache-2.0 */
/* Records and their JSON lines. */
#include "bench/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clean_text.h"

static const char *const names[] = {"PASSED",        "INCORRECT_NUMERICAL", "INCORRECT_SHAPE", "INCORRECT_DTYPE",
                                    "RUNTIME_ERROR", "REWARD_HACK",         "SKIPPED",         "COMPILE_ERROR",
                                    "TIMEOUT",       "CRASHED",             "NOT_RUN",         "IMPLAUSIBLE"};

const char *fkp_case_status_name(fkp_case_status status)
{
    return names[status];
}

bool fkp_case_status_failed(fkp_case_status status)
{
    return status != FKP_PASSED && status != FKP_SKIPPED && status != FKP_NOT_RUN;
}

fkp_case_status fkp_record_end(fkp_record *record, fkp_case_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(record->detail, sizeof record->detail, format, args);
    va_end(args);
    fkp_clean_text(record->detail); /* also a character that the end of the buffer cut */
    record->status = status;
    return status;
}

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *s)
{
    json_t *value = json_string(s);
    return value ? value : json_string("(text that is no UTF-8)");
}

static json_t *mismatches_to_json(const fkp_record *record)
{
    json_t *list = json_array();
    for (int i = 0; i < record->num_mismatches; i++) {
        const fkp_mismatch *m = &record->mismatches[i];
        json_t *index = json_array();
        for (int d = 0; d < m->ndim; d++) json_array_append_new(index, json_integer(m->index[d]));
        json_t *one = json_object();
        json_object_set_new(one, "tensor", json_string(m->field));
        json_object_set_new(one, "index", index);
        json_object_set_new(one, "expected", isfinite(m->expected) ? json_real(m->expected) : json_null());
        json_object_set_new(one, "found", isfinite(m->found) ? json_real(m->found) : json_null());
        if (m->unwritten) json_object_set_new(one, "unwritten", json_true());
        json_array_append_new(list, one);
    }
    return list;
}

fk_status fkp_record_to_json(const fkp_record *r, const fkp_case *c, json_t *object)
{
    char shapes[512], hash[24];
    bool timed = r->pairs > 0;
    snprintf(hash, sizeof hash, "%016" PRIx64, c->hash);
    json_object_set_new(object, "op", json_string(c->op->name));
    json_object_set_new(object, "level", json_integer(c->op->level));
    json_object_set_new(object, "case", text(c->text));
    json_object_set_new(object, "case_hash", json_string(hash));
    json_object_set_new(object, "source", text(c->source));
    json_object_set_new(object, "count", json_integer(c->count));
    json_object_set_new(object, "dtype", json_string(fk_dtype_name(fkp_case_dtype(c))));
    json_object_set_new(object, "shapes", json_string(fkp_case_shapes(c, shapes, sizeof shapes)));
    json_object_set_new(object, "status", json_string(names[r->status]));
    json_object_set_new(object, "verdict", r->verdict ? json_string(fkp_verdict_name(r->verdict)) : json_null());
    json_object_set_new(object, "speedup", timed ? real(r->speedup.ratio) : json_null());
    json_object_set_new(object, "ci_low", timed ? real(r->speedup.low) : json_null());
    json_object_set_new(object, "ci_high", timed ? real(r->speedup.high) : json_null());
    json_object_set_new(object, "candidate_ms", timed ? real(r->candidate_ms) : json_null());
    json_object_set_new(object, "baseline_ms", timed ? real(r->baseline_ms) : json_null());
    json_object_set_new(object, "roofline_fraction", r->roofline_fraction > 0 ? real(r->roofline_fraction) : json_null());
    json_object_set_new(object, "copy_fraction", r->copy_fraction > 0 ? real(r->copy_fraction) : json_null());
    json_object_set_new(object, "empty_call_ms", real(r->empty_call_ms));
    json_object_set_new(object, "baseline", json_string(r->baseline));
    json_object_set_new(object, "max_abs_error", r->compared ? real(r->max_abs_error) : json_null());
    json_object_set_new(object, "max_rel_error", r->compared ? real(r->max_rel_error) : json_null());
    json_object_set_new(object, "baseline_max_abs_error", real(r->baseline_max_abs_error));
    json_object_set_new(object, "matched_ratio", r->compared ? real(r->matched_ratio) : json_null());
    json_object_set_new(object, "rounds", json_integer(r->rounds));
    json_object_set_new(object, "pairs", json_integer(r->pairs));
    json_object_set_new(object, "timed_calls", json_integer(r->timed_calls));
    json_object_set_new(object, "timed_golden", json_integer(r->timed_golden));
    json_object_set_new(object, "slots", json_integer(r->slots));
    json_object_set_new(object, "calls_per_sample", json_integer(r->calls_per_sample));
    json_object_set_new(object, "processes", json_integer(r->processes));
    json_object_set_new(object, "replayed", json_boolean(r->replayed));
    json_object_set_new(object, "launch_bound", json_boolean(r->launch_bound));
    json_object_set_new(object, "mismatches", mismatches_to_json(r));
    json_object_set_new(object, "detail", text(r->detail));
    /* 64 bits do not fit the integers of every JSON reader */
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, r->seed);
    json_object_set_new(object, "seed", json_string(seed));
    json_object_set_new(object, "sandbox", json_string("process"));
    json_object_set_new(object, "seconds", real(r->seconds));
    return FK_OK;
}

fk_status fkp_record_from_json(const json_t *object, fkp_record *record)
{
    *record = (fkp_record){0};
    const char *status = json_string_value(json_object_get(object, "status"));
    const char *verdict = json_string_value(json_object_get(object, "verdict"));
    int found = -1;
    for (int i = 0; status && i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(status, names[i]) == 0) found = i;
    if (found < 0) return fk_fail(FK_ERROR_INVALID, "result line without a known status");
    record->status = (fkp_case_status)found;
    for (int v = FKP_FASTER; v <= FKP_UNDECIDED; v++)
        if (verdict && strcmp(verdict, fkp_verdict_name((fkp_verdict)v)) == 0) record->verdict = (fkp_verdict)v;
    record->speedup = (fkp_ratio){json_number_value(json_object_get(object, "speedup")),
                                  json_number_value(json_object_get(object, "ci_low")),
                                  json_number_value(json_object_get(object, "ci_high"))};
    record->candidate_ms = json_number_value(json_object_get(object, "candidate_ms"));
    record->baseline_ms = json_number_value(json_object_get(object, "baseline_ms"));
    record->pairs = (int)json_integer_value(json_object_get(object, "pairs"));
    record->roofline_fraction = json_number_value(json_object_get(object, "roofline_fraction"));
    return FK_OK;
}
