/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of result files and their grouping: one group for each operator, candidate, device and file, in the order of
 * levels and then of appearance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report_data.h"
#include "core/file_map.h"
#include "core/json.h"

static const fkp_json_limits limits = {64, 2000000};

const char *fkp_record_text(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));
    return text ? text : "";
}

double fkp_record_number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

fkp_outcome fkp_record_outcome(const json_t *record)
{
    const char *status = fkp_record_text(record, "status");
    if (strcmp(status, "PASSED") == 0) return FKP_PASSED;
    return strcmp(status, "SKIPPED") == 0 || strcmp(status, "NOT_RUN") == 0 ? FKP_SKIPPED : FKP_FAILED;
}

double fkp_geomean(double log_sum, int count)
{
    return count > 0 ? exp(log_sum / count) : NAN;
}

fk_status fk_report_create(fk_report **out)
{
    fk_report *report = calloc(1, sizeof *report);
    *out = report;
    if (!report || !(report->records = json_array())) {
        free(report);
        *out = NULL;
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a report");
    }
    return FK_OK;
}

void fk_report_destroy(fk_report *report)
{
    if (!report) return;
    for (int i = 0; i < report->num_groups; i++) free(report->groups[i].cases);
    for (int i = 0; i < report->num_runs; i++) free(report->runs[i].path);
    free(report->groups);
    free(report->runs);
    free(report->evals);
    json_decref(report->records);
    free(report);
}

int fk_report_cases(const fk_report *report)
{
    int cases = 0;
    for (int i = 0; i < report->num_runs; i++) cases += report->runs[i].cases;
    return cases;
}

int fk_report_evals(const fk_report *report)
{
    return report->num_evals;
}

/* Grows an array by one element of `size` bytes; NULL (array untouched) when there is no memory. */
static void *grow(void *array, int count, size_t size)
{
    return realloc(array, ((size_t)count + 1) * size);
}

/* "L2", "2" or 2. */
static int level_of(const json_t *record)
{
    const json_t *level = json_object_get(record, "level");
    if (json_is_integer(level)) return (int)json_integer_value(level);
    const char *text = fkp_record_text(record, "level");
    return atoi(text + (*text == 'L'));
}

static fkp_group *group_of(fk_report *report, const json_t *record, int run)
{
    const char *op = fkp_record_text(record, "op"), *candidate = fkp_record_text(record, "candidate"),
               *device = fkp_record_text(record, "device");
    int level = level_of(record), at = report->num_groups;
    for (int i = 0; i < report->num_groups; i++) {
        fkp_group *g = &report->groups[i];
        if (g->run == run && strcmp(g->op, op) == 0 && strcmp(g->candidate, candidate) == 0 && strcmp(g->device, device) == 0)
            return g;
        if (g->level > level && i < at) at = i;
    }
    fkp_group *groups = grow(report->groups, report->num_groups, sizeof *groups);
    if (!groups) return NULL;
    report->groups = groups;
    memmove(groups + at + 1, groups + at, (size_t)(report->num_groups - at) * sizeof *groups);
    report->num_groups++;
    groups[at] = (fkp_group){.op = op, .candidate = candidate, .device = device, .run = run, .level = level};
    return &groups[at];
}

static fk_status add_case(fk_report *report, json_t *record, int run_index)
{
    fkp_group *group = group_of(report, record, run_index);
    json_t **cases = group ? grow(group->cases, group->num_cases, sizeof(json_t *)) : NULL;
    if (!cases) return fk_fail(FK_ERROR_MEMORY, "out of memory for a report");
    group->cases = cases;
    cases[group->num_cases++] = record;
    fkp_run *run = &report->runs[run_index];
    fkp_outcome outcome = fkp_record_outcome(record);
    double speedup = fkp_record_number(record, "speedup");
    run->cases++;
    run->count[outcome]++;
    group->count[outcome]++;
    if (outcome == FKP_PASSED && speedup > 0) {
        run->log_speedups += log(speedup);
        group->log_speedups += log(speedup);
        run->timed++;
        group->timed++;
    }
    return FK_OK;
}

static fk_status add_record(fk_report *report, json_t *record, int run_index)
{
    fkp_run *run = &report->runs[run_index];
    if (!json_is_object(record)) return fk_fail(FK_ERROR_INVALID, "not a JSON object");
    if (json_array_append(report->records, record) != 0) return fk_fail(FK_ERROR_MEMORY, "out of memory for a report");
    if (!run->header) run->header = record;
    if (json_is_string(json_object_get(record, "op")) && json_is_string(json_object_get(record, "status")))
        return add_case(report, record, run_index);
    if (json_is_string(json_object_get(record, "model")) && json_is_string(json_object_get(record, "status"))) {
        struct fkp_eval *evals = grow(report->evals, report->num_evals, sizeof *evals);
        if (!evals) return fk_fail(FK_ERROR_MEMORY, "out of memory for a report");
        report->evals = evals;
        evals[report->num_evals++] = (struct fkp_eval){record, run_index};
        fkp_outcome outcome = fkp_record_outcome(record);
        double factor = fkp_record_number(record, "factor");
        run->evals++;
        run->eval_count[outcome]++;
        if (outcome == FKP_PASSED && factor > 0) {
            run->log_factors += log(factor);
            run->eval_timed++;
        }
        return FK_OK;
    }
    double planned = fkp_record_number(json_object_get(record, "summary"), "planned");
    if (planned > 0 && planned < 1e9) run->planned += (int)planned;
    return FK_OK; /* a record of another kind says nothing here */
}

/* Adds what one JSON value holds: a record or an array of records. */
static fk_status add_value(fk_report *report, json_t *value, int run)
{
    fk_status status = FK_OK;
    if (!json_is_array(value)) return add_record(report, value, run);
    for (size_t i = 0; i < json_array_size(value) && status == FK_OK; i++)
        status = add_record(report, json_array_get(value, i), run);
    return status;
}

static fk_status add_text(fk_report *report, const char *text, size_t size, int run)
{
    json_t *value;
    if (fkp_json_parse(text, size, limits, &value) == FK_OK) { /* one value, however it is laid out */
        fk_status status = add_value(report, value, run);
        json_decref(value);
        return status;
    }
    int line = 1;
    for (size_t begin = 0; begin < size; line++) {
        const char *newline = memchr(text + begin, '\n', size - begin);
        size_t end = newline ? (size_t)(newline - text) : size;
        size_t blank = begin;
        while (blank < end && strchr(" \t\r", text[blank])) blank++;
        if (blank < end) {
            fk_status status = fkp_json_parse(text + begin, end - begin, limits, &value);
            if (status == FK_OK) {
                status = add_value(report, value, run);
                json_decref(value);
            }
            if (status != FK_OK) return fk_fail_context(status, "line %d", line);
        }
        begin = end + 1;
    }
    return FK_OK;
}

fk_status fk_report_add(fk_report *report, const char *path)
{
    fkp_file_map map;
    fk_status opened = fkp_file_map_open(&map, path);
    if (opened != FK_OK) return opened == FK_ERROR_MISSING ? FK_ERROR_INVALID : opened; /* a mistyped name is bad input */
    fkp_run *runs = grow(report->runs, report->num_runs, sizeof *runs);
    char *copy = malloc(strlen(path) + 1);
    if (!runs || !copy) {
        if (runs) report->runs = runs;
        free(copy);
        fkp_file_map_close(&map);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a report");
    }
    report->runs = runs;
    strcpy(copy, path);
    int run = report->num_runs++;
    runs[run] = (fkp_run){.path = copy};
    fk_status status = add_text(report, (const char *)map.data, map.size, run);
    fkp_file_map_close(&map);
    if (status == FK_OK && runs[run].cases == 0 && runs[run].evals == 0)
        status = fk_fail(FK_ERROR_INVALID, "no record of bench or eval in it");
    if (runs[run].planned < runs[run].cases) runs[run].planned = runs[run].cases;
    return fk_fail_context(status, "%s", path);
}
