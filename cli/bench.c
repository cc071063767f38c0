/* SPDX-License-Identifier: Apache-2.0 */
/* `bench`: judges candidates, operator by operator, case by case. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/compile.h"
#include "bench/judge.h"
#include "bench/protocol.h"
#include "bench/results.h"
#include "bench/roofline.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/supervise.h"
#include "cli/watch.h"
#include "core/nearest.h"
#include "core/seeded.h"

typedef struct bench_options {
    const char *candidates, *captures, *ops, *level, *pin, *output, *dtype;
    fkp_list cases;
    double min_time_ms;
    int64_t fuzz, max_cases;
    bool self_test, no_timing, resume, build_only, watch;
} bench_options;

#define AT(field) offsetof(bench_options, field)
static const fkp_option options[] = {
    {"candidates", FKP_OPT_STRING, AT(candidates), "DIR|FILE", "folder of candidates, or one file <op>.c, .cu or .so", "candidates", .max = 0},
    {"captures", FKP_OPT_STRING, AT(captures), "DIR", "captured cases (captures/<scenario>); without it the operators' declared cases", .max = 0},
    {"ops", FKP_OPT_STRING, AT(ops), "A,B", "these operators only", .max = 0},
    {"level", FKP_OPT_STRING, AT(level), "L1..L3", "operators of this level only (several: L1,L2)", .max = 0},
    {"case", FKP_OPT_LIST, AT(cases), "CASE", "a case of the operators in --ops, as 'T=8192 D=4096 dtype=bf16'; several: again, or with ';'", .max = 0},
    {"self-test", FKP_OPT_FLAG, AT(self_test), NULL, "the baseline against itself: what the measurement is worth", .max = 0},
    {"baseline", FKP_OPT_STRING, AT(pin), "NAME", "compare with this implementation (list operators shows them) instead of the best", .max = 0},
    {"dtype", FKP_OPT_STRING, AT(dtype), "D", "dtype of declared cases; f32 on the CPU, bf16 on a GPU", .max = 0},
    {"fuzz", FKP_OPT_INT, AT(fuzz), "N", "N more cases an operator, of random shapes around the declared ones", .max = 10000},
    {"max-cases", FKP_OPT_INT, AT(max_cases), "N", "of a capture at most N cases an operator: smallest, largest, middle, then the most frequent", "8", .min = 1, .max = 1e6},
    {"min-time-ms", FKP_OPT_REAL, AT(min_time_ms), "MS", "time spent on timing a case unless 1 % certainty comes earlier; 300 on the CPU, 1000 on a GPU",
     .min = 1, .max = 1e7},
    {"no-timing", FKP_OPT_FLAG, AT(no_timing), NULL, "correctness alone: a few fresh calls a case, no verdict of speed", .max = 0},
    {"resume", FKP_OPT_FLAG, AT(resume), NULL, "keep finished cases of the result file (without -o: of the newest one)", .max = 0},
    {"build-only", FKP_OPT_FLAG, AT(build_only), NULL, "compile the candidates and stop; needs no device", .max = 0},
    {"watch", FKP_OPT_FLAG, AT(watch), NULL, "when done, wait: whenever candidates change, judge those again; a result file a round", .max = 0},
    {"output", FKP_OPT_STRING, AT(output), "FILE", "result file, one JSON object a line; default results/<device>/<date>-bench.json", .letter = 'o'},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

/* One invocation. */
typedef struct bench {
    fkp_cli *cli;
    const bench_options *o;
    fk_device device;
    char device_name[128];
    unsigned levels;
    const char *changed; /* operators of this round of --watch; NULL: all */
    bool *wanted;        /* by operator: --ops and --level */
    fkp_candidate_list candidates;
    fkp_case_list cases;
    fkp_judge *judge;
    fkp_results results;
    uint64_t environment_hash;
    fkp_progress progress;
    int done, passed, failed, skipped, not_run;
    int verdicts[FKP_UNDECIDED + 1];
    double log_speedup;
    int timed;
    char last_detail[1600];
    char not_run_detail[512]; /* of the first case that was not run */
    fk_status failure;        /* first one that left an operator's cases not run */
    char failure_message[2048];
} bench;

/* Sets marks[operator] for each of `ops`, names separated by commas. */
static fk_status mark_ops(const char *ops, bool *marks)
{
    fkp_list names = {0};
    fk_status status = fkp_split_commas(ops, &names);
    for (int i = 0; i < names.count && status == FK_OK; i++) {
        const fk_op *op = fk_op_find(names.items[i]);
        if (op) {
            marks[op->index] = true;
            continue;
        }
        fkp_nearest nearest = {.word = names.items[i]};
        for (int k = 0; k < fk_op_count(); k++) fkp_nearest_offer(&nearest, fk_op_at(k)->name);
        status = fkp_fail_unknown("operator", &nearest, "'fastkernels list operators' shows them");
    }
    free((void *)(uintptr_t)names.items);
    return status;
}

static fk_status choose_ops(bench *b)
{
    FK_TRY(fkp_parse_levels(b->o->level, &b->levels));
    b->wanted = calloc((size_t)fk_op_count(), sizeof *b->wanted);
    if (!b->wanted) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    if (b->o->ops) FK_TRY(mark_ops(b->o->ops, b->wanted));
    else memset(b->wanted, true, (size_t)fk_op_count() * sizeof *b->wanted);
    bool *changed = calloc((size_t)fk_op_count(), sizeof *changed);
    if (!changed) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    fk_status status = b->changed ? mark_ops(b->changed, changed) : FK_OK;
    for (int i = 0; i < fk_op_count(); i++)
        b->wanted[i] &= (b->levels >> fk_op_at(i)->level & 1) && (changed[i] || !b->changed);
    free(changed);
    return status;
}

static const fkp_candidate_file *candidate_of(const bench *b, const fk_op *op)
{
    for (int i = 0; i < b->candidates.count; i++)
        if (b->candidates.items[i].op == op) return &b->candidates.items[i];
    return NULL;
}

/* A name of --baseline that no operator has is a slip of the pen: "reference", or one of the backend's. */
static fk_status check_baseline(const char *name, const fk_backend *backend)
{
    if (!name || strcmp(name, "reference") == 0) return FK_OK;
    fkp_nearest nearest = {.word = name};
    for (int i = 0; i < backend->num_impls; i++) {
        if (strcmp(backend->impls[i]->name, name) == 0) return FK_OK;
        fkp_nearest_offer(&nearest, backend->impls[i]->name);
    }
    return fkp_fail_unknown("baseline", &nearest, "'fastkernels list operators' shows the implementations");
}

/* Why there is nothing to do. */
static fk_status fail_without_cases(const bench *b)
{
    bool named = false;
    for (int i = 0; i < fk_op_count(); i++) named = named || (b->wanted[i] && candidate_of(b, fk_op_at(i)));
    const char *these = b->o->ops ? b->o->ops : b->o->level ? b->o->level : "any operator";
    if (!b->o->self_test && !named)
        return fk_fail(FK_ERROR_INVALID, "nothing to bench: no candidate of %s in %s", these, b->o->candidates);
    return fk_fail(FK_ERROR_INVALID, "nothing to bench: no case of %s in %s", b->o->ops || b->o->self_test ? these : "these candidates",
                   b->o->captures ? b->o->captures : "the declared cases");
}

static fk_status add_cases(bench *b, const fk_op *op, fk_dtype dtype)
{
    for (int i = 0; i < b->o->cases.count; i++) FK_TRY(fkp_cases_given(&b->cases, op, b->o->cases.items[i], dtype));
    if (b->o->cases.count) return FK_OK;
    FK_TRY(fkp_cases_declared(&b->cases, op, dtype));
    if (b->o->fuzz <= 0) return FK_OK;
    uint64_t seed = b->cli->common.seed >= 0 ? (uint64_t)b->cli->common.seed : (uint64_t)(fkp_now() * 1e9);
    return fkp_cases_fuzz(&b->cases, op, dtype, (int)b->o->fuzz, fkp_mix64(seed ^ (uint64_t)op->index), b->judge);
}

static fk_status plan(bench *b)
{
    fk_dtype dtype = b->o->dtype ? fk_dtype_parse(b->o->dtype) : b->device.type == FK_CPU ? FK_F32 : FK_BF16;
    if (dtype != FK_F32 && dtype != FK_F16 && dtype != FK_BF16) return fk_fail(FK_ERROR_INVALID, "--dtype %s is none of f32, f16, bf16", b->o->dtype);
    if (b->o->cases.count && (!b->o->ops || b->o->captures))
        return fk_fail(FK_ERROR_INVALID, "--case '%s': %s", b->o->cases.items[0],
                       b->o->captures ? "cases come from --captures here" : "--ops must say of which operators");
    if (b->o->captures) FK_TRY(fkp_cases_captured(&b->cases, b->o->captures, b->wanted));
    for (int i = 0; i < fk_op_count(); i++) {
        const fk_op *op = fk_op_at(i);
        if (!b->wanted[i] || (!b->o->self_test && !candidate_of(b, op))) continue;
        if (!b->o->captures) FK_TRY(add_cases(b, op, dtype));
    }
    int kept = 0;
    for (int i = 0; i < b->cases.count; i++) { /* captures hold operators without a candidate too */
        if (b->o->self_test || candidate_of(b, b->cases.items[i].op)) b->cases.items[kept++] = b->cases.items[i];
        else fkp_case_deinit(&b->cases.items[i]);
    }
    b->cases.count = kept;
    fkp_cases_sort(&b->cases);
    if (b->o->captures) fkp_cases_select(&b->cases, (int)b->o->max_cases);
    return kept == 0 ? fail_without_cases(b) : FK_OK;
}

static fkp_style status_style(const fkp_record *r)
{
    if (fkp_case_status_failed(r->status)) return FKP_RED;
    if (r->status != FKP_PASSED) return FKP_YELLOW;
    return r->verdict == FKP_FASTER ? FKP_GREEN : r->verdict == FKP_SLOWER ? FKP_YELLOW : FKP_PLAIN;
}

static void print_mismatches(bench *b, const fkp_record *r)
{
    for (int i = 0; i < r->num_mismatches && i < 3; i++) {
        const fkp_mismatch *m = &r->mismatches[i];
        char index[160] = "";
        size_t n = 0;
        for (int d = 0; d < m->ndim && n < sizeof index; d++)
            n += (size_t)snprintf(index + n, sizeof index - n, "%s%lld", d ? ", " : "", (long long)m->index[d]);
        if (m->unwritten) fkp_print(b->cli, "      %s[%s]: expected %.9g, never written\n", m->field, index, m->expected);
        else fkp_print(b->cli, "      %s[%s]: expected %.9g, found %.9g (may differ by %.2g)\n", m->field, index, m->expected, m->found, m->allowed);
    }
}

static void print_record(bench *b, const fkp_case *c, const fkp_record *r)
{
    char shapes[200];
    fkp_cli *cli = b->cli;
    if (!fkp_prints(cli) || (r->status == FKP_NOT_RUN && fkp_interrupted())) return; /* the summary counts them */
    fkp_print(cli, "%-28s %-5s %-34s ", c->op->name, fk_dtype_name(fkp_case_dtype(c)), fkp_case_shapes(c, shapes, sizeof shapes));
    fkp_print(cli, "%s%-9s%s", fkp_style_on(cli, status_style(r)), r->verdict ? fkp_verdict_name(r->verdict) : fkp_case_status_name(r->status),
              fkp_style_off(cli, status_style(r)));
    if (r->pairs > 0 && r->status == FKP_PASSED) {
        fkp_print(cli, " %6.3fx [%.3f, %.3f]  %9.4f ms", r->speedup.ratio, r->speedup.low, r->speedup.high, r->candidate_ms);
        if (r->roofline_fraction > 0) fkp_print(cli, "  %3.0f %% of the roofline", 100 * r->roofline_fraction);
    }
    fkp_print(cli, "\n");
    if (r->detail[0] && strcmp(r->detail, b->last_detail) != 0) fkp_print(cli, "      %s\n", r->detail);
    snprintf(b->last_detail, sizeof b->last_detail, "%s", r->detail); /* a compiler's error is shown once */
    print_mismatches(b, r);
}

static void count(bench *b, const fkp_record *r)
{
    b->done++;
    if (r->status == FKP_PASSED) b->passed++;
    else if (fkp_case_status_failed(r->status)) b->failed++;
    else if (r->status == FKP_SKIPPED) b->skipped++;
    else if (b->not_run++ == 0) snprintf(b->not_run_detail, sizeof b->not_run_detail, "%.*s", (int)sizeof b->not_run_detail - 1, r->detail);
    if (r->status != FKP_PASSED || r->pairs == 0) return;
    b->verdicts[r->verdict]++;
    b->log_speedup += log(r->speedup.ratio);
    b->timed++;
}

/* A record that is known: printed, counted, on disk. */
static fk_status finish_case(bench *b, const fkp_case *c, const fkp_record *r, const char *key, uint64_t candidate_hash,
                             const char *candidate)
{
    char hash[24];
    json_t *line = fkp_result_full(b->cli, "bench");
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)candidate_hash);
    json_object_set_new(line, "key", json_string(key));
    json_object_set_new(line, "candidate", candidate ? fkp_json_text(candidate) : json_null());
    json_object_set_new(line, "candidate_hash", json_string(hash));
    json_object_set_new(line, "self_test", json_boolean(b->o->self_test));
    fk_status status = fkp_record_to_json(r, c, line);
    if (status == FK_OK) status = fkp_results_write(&b->results, line);
    print_record(b, c, r);
    count(b, r);
    fkp_emit(b->cli, line);
    return status;
}

/* What the cases of an operator have in common when its candidate cannot be built. */
static void record_compile_error(const fkp_compiled *compiled, const fkp_candidate_file *file, fkp_record *r)
{
    char first[1200];
    snprintf(first, sizeof first, "%.1199s", compiled->messages);
    int lines = 0;
    for (char *c = first; *c; c++)
        if (*c == '\n' && ++lines == 6) *c = 0; /* the first lines say what it is */
    if (first[0] && first[strlen(first) - 1] == '\n') first[strlen(first) - 1] = 0;
    fkp_record_end(r, compiled->timed_out ? FKP_TIMEOUT : FKP_COMPILE_ERROR, "%s does not compile: %s", file->path, first);
}

#define COMPILE_TIMEOUT_S 300

/* A candidate that cannot be built for reasons of this machine's leaves its operator's cases not run; others go on. */
static void note_failure(bench *b, fk_status status)
{
    if (b->failure != FK_OK) return;
    b->failure = status;
    snprintf(b->failure_message, sizeof b->failure_message, "%s", fk_error_message());
}

/* Cases [first, last) of one operator. */
static fk_status bench_op(bench *b, int first, int last)
{
    const fk_op *op = b->cases.items[first].op;
    const fkp_candidate_file *file = b->o->self_test ? NULL : candidate_of(b, op);
    fkp_compiled compiled = {.good = true};
    fk_status built = FK_OK;
    char why[1024] = "";
    if (file) {
        fkp_progress_update(&b->progress, b->done, file->path);
        if (fkp_interrupted()) built = fkp_candidate_identify(file, b->cli->common.cache, &compiled);
        else built = fkp_candidate_compile(file, b->cli->common.cache, COMPILE_TIMEOUT_S, fkp_interrupted, &compiled);
        if (built != FK_OK) snprintf(why, sizeof why, "%.1000s", fk_error_message());
        if (built != FK_OK && built != FK_ERROR_INTERRUPTED) note_failure(b, built);
    }
    if (b->o->pin) compiled.hash = fkp_mix64(compiled.hash ^ fkp_fnv1a64(b->o->pin, strlen(b->o->pin)));
    if (built == FK_OK) FK_TRY(fkp_judge_begin(b->judge, op, file ? compiled.library : NULL, b->o->pin));
    for (int i = first; i < last; i++) {
        const fkp_case *c = &b->cases.items[i];
        char key[128];
        fkp_record record;
        fkp_results_key(c, compiled.hash, b->environment_hash, key);
        const json_t *old = fkp_results_find(&b->results, key);
        if (old && fkp_record_from_json(old, &record) == FK_OK && record.status != FKP_NOT_RUN) {
            print_record(b, c, &record);
            count(b, &record);
            fkp_emit(b->cli, json_deep_copy(old));
            continue;
        }
        fkp_progress_update(&b->progress, b->done, c->text);
        record = (fkp_record){.matched_ratio = 1};
        if (fkp_interrupted()) fkp_record_end(&record, FKP_NOT_RUN, "interrupted");
        else if (built != FK_OK) fkp_record_end(&record, FKP_NOT_RUN, "%s", why);
        else if (compiled.good) fkp_judge_case(b->judge, c, &record);
        else record_compile_error(&compiled, file, &record);
        FK_TRY(finish_case(b, c, &record, key, compiled.hash, file ? file->path : NULL));
    }
    return FK_OK;
}

static void summarize(bench *b)
{
    json_t *summary = json_object(), *line = fkp_result_full(b->cli, "bench");
    double geomean = b->timed ? exp(b->log_speedup / b->timed) : 0;
    json_object_set_new(summary, "planned", json_integer(b->cases.count));
    json_object_set_new(summary, "passed", json_integer(b->passed));
    json_object_set_new(summary, "failed", json_integer(b->failed));
    json_object_set_new(summary, "skipped", json_integer(b->skipped));
    json_object_set_new(summary, "not_run", json_integer(b->cases.count - b->passed - b->failed - b->skipped));
    json_object_set_new(summary, "geomean", b->timed ? json_real(geomean) : json_null());
    for (int v = FKP_FASTER; v <= FKP_UNDECIDED; v++) {
        static const char *const names[] = {"", "faster", "same", "slower", "undecided"};
        json_object_set_new(summary, names[v], json_integer(b->verdicts[v]));
    }
    json_object_set_new(line, "summary", summary);
    fkp_results_write(&b->results, line);
    fkp_print(b->cli, "\n%d planned: %d passed (%d faster, %d same, %d slower, %d undecided), %d failed, %d skipped, %d not run",
              b->cases.count, b->passed, b->verdicts[FKP_FASTER], b->verdicts[FKP_SAME], b->verdicts[FKP_SLOWER],
              b->verdicts[FKP_UNDECIDED], b->failed, b->skipped, b->cases.count - b->passed - b->failed - b->skipped);
    if (b->timed) fkp_print(b->cli, "; geometric mean %.3fx of %d", geomean, b->timed);
    fkp_print(b->cli, "\n%s\n", b->results.path);
    fkp_emit(b->cli, line);
}

static fk_status build_all(bench *b)
{
    for (int i = 0; i < b->candidates.count; i++) {
        fkp_compiled compiled;
        const fkp_candidate_file *file = &b->candidates.items[i];
        if (!b->wanted[file->op->index]) continue;
        FK_TRY(fkp_candidate_compile(file, b->cli->common.cache, COMPILE_TIMEOUT_S, fkp_interrupted, &compiled));
        fkp_record record = {0};
        if (!compiled.good) record_compile_error(&compiled, file, &record);
        json_t *line = fkp_result(b->cli, "bench");
        json_object_set_new(line, "op", json_string(file->op->name));
        json_object_set_new(line, "status", json_string(compiled.good ? "BUILT" : fkp_case_status_name(record.status)));
        json_object_set_new(line, "detail", fkp_json_text(compiled.good ? compiled.library : record.detail));
        fkp_emit(b->cli, line);
        fkp_print(b->cli, "%-28s %s\n", file->op->name, compiled.good ? compiled.library : record.detail);
        b->failed += !compiled.good;
    }
    return FK_OK;
}

static bool names_device(const void *values)
{
    const bench_options *o = values;
    return o->build_only && !o->self_test;
}

static fk_status prepare(bench *b)
{
    const bench_options *o = b->o;
    fk_backend *backend;
    fk_device_info info;
    FK_TRY(choose_ops(b));
    if (names_device(o)) {
        FK_TRY(fk_device_parse(b->cli->common.device, &b->device));
        return fkp_candidates_find(o->candidates, (fk_device_type)b->device.type, &b->candidates);
    }
    FK_TRY(fkp_cli_device(b->cli, &b->device));
    FK_TRY(fk_backend_get(b->device, &backend));
    FK_TRY(backend->describe(backend, &info));
    snprintf(b->device_name, sizeof b->device_name, "%s", info.name);
    uint64_t hash = fkp_fnv1a64(info.name, strlen(info.name)) ^ fkp_fnv1a64(info.description, strlen(info.description));
    b->environment_hash = fkp_mix64(hash ^ (uint64_t)b->cli->common.threads ^ fkp_fnv1a64(fkp_commit, strlen(fkp_commit)));
    if (o->no_timing) b->environment_hash = ~b->environment_hash; /* --resume takes no untimed case for a timed one */
    if (!o->self_test) FK_TRY(fkp_candidates_find(o->candidates, (fk_device_type)b->device.type, &b->candidates));
    FK_TRY(check_baseline(o->pin, backend));
    double time_ms = o->min_time_ms > 0 ? o->min_time_ms : b->device.type == FK_CPU ? 300 : 1000;
    fkp_judge_options options = {.device = b->device, .threads = (int)b->cli->common.threads, .time_budget_s = time_ms / 1e3,
                                 .timeout_s = fkp_call_timeout_s(20), .timing = !o->no_timing, .interrupted = fkp_interrupted};
    if (b->cli->common.seed >= 0) options.seed = 1 + (uint64_t)b->cli->common.seed;
    FK_TRY(fk_roofline_get(b->device, b->cli->common.cache, &options.roofline));
    FK_TRY(fkp_judge_create(&options, &b->judge));
    FK_TRY(plan(b));
    return fkp_results_open(&b->results, o->output, b->device_name, o->resume);
}

/* What the whole run comes to, beside its verdicts: no case may be left out in silence. */
static fk_status conclude(const bench *b)
{
    FK_TRY(fkp_interrupt_check());
    if (b->failure != FK_OK) return fk_fail(b->failure, "%s", b->failure_message);
    if (b->failed || !b->not_run) return FK_OK;
    return fk_fail(FK_ERROR_MISSING, "%d of %d cases could not be run; the first: %s", b->not_run, b->cases.count, b->not_run_detail);
}

/* One round: of the operators in `changed`, or of all (NULL). */
static int run_round(fkp_cli *cli, const bench_options *o, const char *changed)
{
    bench b = {.cli = cli, .o = o, .changed = changed};
    fk_status status = prepare(&b);
    if (status == FK_OK && b.o->build_only) status = build_all(&b);
    else if (status == FK_OK) {
        fkp_progress_begin(cli, &b.progress, "bench", b.cases.count);
        for (int first = 0, last; first < b.cases.count && status == FK_OK; first = last) {
            for (last = first; last < b.cases.count && b.cases.items[last].op == b.cases.items[first].op;) last++;
            status = bench_op(&b, first, last); /* after Ctrl-C, the rest is recorded as not run */
        }
        fkp_progress_end(&b.progress);
        summarize(&b);
    }
    fkp_judge_destroy(b.judge);
    fkp_results_close(&b.results);
    if (status == FK_OK) status = conclude(&b);
    fkp_case_list_deinit(&b.cases);
    fkp_candidates_deinit(&b.candidates);
    free(b.wanted);
    if (status != FK_OK) return fkp_exit(cli, status);
    return b.failed ? FKP_EXIT_JUDGED : FKP_EXIT_OK;
}

static int run_watching(fkp_cli *cli, const bench_options *o)
{
    fkp_watch watch;
    fk_device device;
    char *changed = NULL;
    fk_status status = fk_device_parse(cli->common.device, &device);
    if (status == FK_OK) status = fkp_watch_open(&watch, o->candidates, (fk_device_type)device.type);
    if (status != FK_OK) return fkp_exit(cli, status);
    int code = run_round(cli, o, NULL);
    while ((code == FKP_EXIT_OK || code == FKP_EXIT_JUDGED || changed) && status == FK_OK && !fkp_interrupted()) { /* a first round that cannot begin ends it */
        if (fkp_prints(cli)) fkp_print(cli, "watching %s; Ctrl-C ends\n\n", o->candidates);
        free(changed);
        status = fkp_watch_wait(&watch, &changed);
        if (status == FK_OK) code = run_round(cli, o, changed);
    }
    free(changed);
    fkp_watch_close(&watch);
    return status != FK_OK ? fkp_exit(cli, status) : code;
}

static int run(fkp_cli *cli, const void *values)
{
    const bench_options *o = values;
    if (!o->watch) return run_round(cli, o, NULL);
    if (o->self_test || o->output || o->resume)
        return fkp_exit(cli, fk_fail(FK_ERROR_INVALID, "--watch and %s exclude each other",
                                     o->self_test ? "--self-test" : o->output ? "--output" : "--resume"));
    return run_watching(cli, o);
}

const fkp_command fkp_command_bench = {
    .name = "bench",
    .summary = "judge candidates, operator by operator: correct? how fast against the baseline and the roofline?",
    .options = options,
    .options_size = sizeof(bench_options),
    .details = "Each case runs in two processes, baseline and candidate, on the judge's buffers. Verdicts: FASTER, SLOWER, SAME (the\n"
               "95 % interval of the speedup lies within 0.98 to 1.02), UNDECIDED. Caches are cold: they are flushed before every batch\n"
               "of timed calls. A candidate that is wrong, crashes or does not compile fails (exit 1); SLOWER is no failure.",
    .examples = {"fastkernels bench --candidates examples/candidates/good", "fastkernels bench --self-test --ops rms_norm,silu_and_mul"},
    .names_device = names_device,
    .run = run};
