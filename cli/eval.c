/* SPDX-License-Identifier: Apache-2.0 */
/* `eval`: a whole model, baseline against candidates. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/eval.h"
#include "cli/interrupt.h"
#include "cli/model_input.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/supervise.h"

typedef struct eval_options {
    const char *scenario, *model, *candidates, *dtype;
    int64_t max_requests, max_layers, pairs;
    double time_budget_s;
    bool self_test;
} eval_options;

#define AT(field) offsetof(eval_options, field)
static const fkp_option options[] = {
    {"scenario", FKP_OPT_STRING, AT(scenario), "S|FILE", "what to run (list scenarios)", "demo", .max = 0},
    {"model", FKP_OPT_STRING, AT(model), "M", "instead of the scenario's model", .max = 0},
    {"candidates", FKP_OPT_STRING, AT(candidates), "DIR|FILE", "the kernels to judge; bench them first", .max = 0},
    {"self-test", FKP_OPT_FLAG, AT(self_test), NULL, "the baseline against itself: what the measurement is worth", .max = 0},
    {"max-requests", FKP_OPT_INT, AT(max_requests), "N", "only the first N requests", .min = 1, .max = 1e9},
    {"max-layers", FKP_OPT_INT, AT(max_layers), "N", "only the first N layers of the model", .min = 1, .max = 1e6},
    {"pairs", FKP_OPT_INT, AT(pairs), "N", "runs of each side at most; fewer when the time is up, but at least 4", "20", .min = 4, .max = 1000},
    {"time-budget-s", FKP_OPT_REAL, AT(time_budget_s), "S", "no further runs after so many seconds", "30", .min = 0, .max = 1e6},
    {"dtype", FKP_OPT_STRING, AT(dtype), "T", "f32, bf16 or f16; without it f32 on the CPU, bf16 on a GPU", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

typedef struct session {
    fkp_cli *cli;
    const eval_options *o;
    fkp_scenario *scenario;
    fk_model *model;
    fk_device device;
    fkp_requests requests;
    fkp_candidate_set candidates;
    fkp_eval eval;
    bool judged; /* eval is filled in */
    fkp_progress progress;
} session;

/* ---- results */

static json_t *side_json(const fkp_eval_side *side)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "tok_s", fkp_json_real(side->tok_s), "req_s", fkp_json_real(side->req_s), "ttft_ms",
                     fkp_json_real(side->ttft_ms), "tpot_ms", fkp_json_real(side->tpot_ms));
}

static json_t *divergence_json(const fkp_divergence *d)
{
    return json_pack("{s:I, s:I, s:i, s:i, s:o, s:o, s:o, s:b}", "request", (json_int_t)d->request + 1, "step", (json_int_t)d->step,
                     "baseline_id", d->baseline_id, "candidate_id", d->candidate_id, "logit_gap", fkp_json_real(d->baseline_gap),
                     "candidate_logit_gap", fkp_json_real(d->candidate_gap), "threshold", fkp_json_real(d->threshold), "near_tie",
                     d->near_tie);
}

/* What is known before anything ran. */
static json_t *head_json(session *s)
{
    json_t *result = fkp_result(s->cli, "eval");
    json_object_set_new(result, "model", fkp_json_text(s->o->model ? s->o->model : s->scenario->model));
    json_object_set_new(result, "workload", fkp_json_text(s->scenario->name));
    json_object_set_new(result, "self_test", json_boolean(s->o->self_test));
    if (s->model) json_object_set_new(result, "dtype", json_string(fk_dtype_name(fk_model_dtype(s->model))));
    return result;
}

static json_t *result_json(session *s)
{
    const fkp_eval *e = &s->eval;
    bool timed = e->factor.ratio > 0;
    json_t *result = head_json(s), *reached = json_object(), *covered = json_object(), *unused = json_array();
    json_object_set_new(result, "status", json_string(fkp_case_status_name(e->status)));
    json_object_set_new(result, "detail", fkp_json_text(e->detail));
    if (e->metric.name)
        json_object_set_new(result, "metric", json_pack("{s:s, s:o, s:o}", "name", e->metric.name, "value", fkp_json_real(e->metric.value),
                                                        "threshold", fkp_json_real(e->metric.threshold)));
    else json_object_set_new(result, "tokens_equal", json_boolean(e->tokens_equal));
    json_object_set_new(result, "requests", json_integer(e->requests));
    json_object_set_new(result, "requests_equal", json_integer(e->equal_requests));
    json_object_set_new(result, "tokens", json_integer(e->tokens));
    json_object_set_new(result, "near_ties", json_integer(e->near_ties));
    json_object_set_new(result, "first_divergence", e->diverged ? divergence_json(&e->first) : json_null());
    for (int i = 0; i < s->candidates.count; i++) {
        json_object_set_new(reached, s->candidates.ops[i]->name, json_integer(e->reached[i]));
        if (e->calls[i] == 0) json_array_append_new(unused, json_string(s->candidates.ops[i]->name));
        if (e->covered_by[i]) json_object_set_new(covered, s->candidates.ops[i]->name, json_string(e->covered_by[i]));
    }
    json_object_set_new(result, "reached", reached);
    json_object_set_new(result, "covered_by", covered);
    json_object_set_new(result, "not_called", unused);
    json_object_set_new(result, "baseline", timed ? side_json(&e->baseline) : json_null());
    json_object_set_new(result, "candidate", timed ? side_json(&e->candidate) : json_null());
    json_object_set_new(result, "factor", timed ? fkp_json_real(e->factor.ratio) : json_null());
    json_object_set_new(result, "ci_low", timed ? fkp_json_real(e->factor.low) : json_null());
    json_object_set_new(result, "ci_high", timed ? fkp_json_real(e->factor.high) : json_null());
    json_object_set_new(result, "verdict", json_string(fkp_verdict_name(e->verdict)));
    json_object_set_new(result, "pairs", json_integer(e->pairs));
    return result;
}

static void print_side(session *s, const char *name, const fkp_eval_side *side)
{
    if (s->eval.metric.name) {
        fkp_print(s->cli, "  %-11s %8.1f tok/s  %7.2f req/s\n", name, side->tok_s, side->req_s);
        return;
    }
    fkp_print(s->cli, "  %-11s %8.1f tok/s  %7.2f req/s  first token %8.1f ms  each further %7.2f ms\n", name, side->tok_s, side->req_s,
              side->ttft_ms, side->tpot_ms);
}

static void print_reached(session *s)
{
    for (int i = 0; i < s->candidates.count; i++) {
        const char *covered_by = s->eval.covered_by[i];
        const char *name = s->candidates.ops[i]->name, *head = i ? "" : "reached";
        if (s->eval.calls[i] == 0) fkp_print(s->cli, "  %-11s %s: this model never calls it\n", head, name);
        else if (covered_by) fkp_print(s->cli, "  %-11s %s %lld calls (in a run without %s, which computes it itself)\n", head, name,
                                       (long long)s->eval.reached[i], covered_by);
        else fkp_print(s->cli, "  %-11s %s %lld calls\n", head, name, (long long)s->eval.reached[i]);
    }
}

static void print_result(session *s)
{
    const fkp_eval *e = &s->eval;
    fkp_cli *cli = s->cli;
    if (!fkp_prints(cli)) return;
    char device[32];
    fkp_print(cli, "%s%s%s on %s, %s, %s: %lld requests, %lld tokens\n", fkp_style_on(cli, FKP_BOLD), s->scenario->name,
              fkp_style_off(cli, FKP_BOLD), fk_model_name(s->model), fk_dtype_name(fk_model_dtype(s->model)),
              fk_device_format(s->device, device, sizeof device), (long long)e->requests, (long long)e->tokens);
    if (e->metric.name)
        fkp_print(cli, "  %-11s %s 1 - %.3g at worst, at least 1 - %.3g is wanted (%lld of %lld requests have it)\n", "vectors", e->metric.name,
                  1 - e->metric.value, 1 - e->metric.threshold, (long long)e->equal_requests, (long long)e->requests);
    else fkp_print(cli, "  %-11s %s (%lld of %lld requests)\n", "tokens", e->tokens_equal ? "equal" : "differ", (long long)e->equal_requests,
              (long long)e->requests);
    if (e->diverged)
        fkp_print(cli, "  %-11s request %lld, step %lld: %d, candidate %d; logit gap %.4g, %.4g in the candidate; %s (threshold %.4g)\n",
                  e->first.near_tie ? "near tie" : "error", (long long)e->first.request + 1, (long long)e->first.step, e->first.baseline_id,
                  e->first.candidate_id, e->first.baseline_gap, e->first.candidate_gap, e->first.near_tie ? "a near tie" : "no near tie",
                  e->first.threshold);
    if (e->factor.ratio > 0) {
        print_side(s, "baseline", &e->baseline);
        print_side(s, s->o->self_test ? "itself" : "candidates", &e->candidate);
        fkp_style style = e->verdict == FKP_FASTER ? FKP_GREEN : e->verdict == FKP_SLOWER ? FKP_YELLOW : FKP_PLAIN;
        fkp_print(cli, "  %-11s %s%.3fx%s (%.3f to %.3f; %d pairs of runs, rates are medians) %s\n", "factor", fkp_style_on(cli, style), e->factor.ratio,
                  fkp_style_off(cli, style), e->factor.low, e->factor.high, e->pairs, fkp_verdict_name(e->verdict));
    }
    print_reached(s);
    bool passed = e->status == FKP_PASSED;
    fkp_print(cli, "%s%s%s%s%s\n", fkp_style_on(cli, passed ? FKP_GREEN : FKP_RED), fkp_case_status_name(e->status),
              fkp_style_off(cli, passed ? FKP_GREEN : FKP_RED), *e->detail ? ": " : "", e->detail);
}

/* ---- running */

static void progress(void *user, const char *what, int done, int total)
{
    session *s = user;
    if (s->progress.total != total) {
        fkp_progress_end(&s->progress);
        fkp_progress_begin(s->cli, &s->progress, "eval", total);
    }
    fkp_progress_update(&s->progress, done, what);
}

static void note_head(session *s)
{
    json_t *head = head_json(s);
    fkp_supervised_head(head);
    json_decref(head);
}

/* A candidate that does not compile or load is a judgement, not an error of the command. */
static fk_status open_candidates(session *s)
{
    if (s->o->self_test) return FK_OK;
    note_head(s);
    fk_status status = fkp_candidate_set_open(s->o->candidates, (fk_device_type)s->device.type, s->cli->common.cache, fkp_interrupted,
                                      &s->candidates);
    if (status != FK_ERROR_CANDIDATE) return status;
    json_t *result = head_json(s);
    json_object_set_new(result, "status", json_string("COMPILE_ERROR"));
    json_object_set_new(result, "detail", fkp_json_text(fk_error_message()));
    json_object_set_new(result, "reached", json_object());
    fkp_emit(s->cli, result);
    return status;
}

static fk_status check_options(const session *s)
{
    if (s->o->self_test && s->o->candidates) return fk_fail(FK_ERROR_INVALID, "--self-test takes no --candidates '%s'", s->o->candidates);
    if (!s->o->self_test && !s->o->candidates)
        return fk_fail(FK_ERROR_INVALID, "nothing to judge: give --candidates DIR, or --self-test for the baseline against itself");
    return FK_OK;
}

static fk_status judge(session *s)
{
    fkp_eval_options o = {.threads = (int)s->cli->common.threads,
                          .min_pairs = 4,
                          .max_pairs = (int)s->o->pairs,
                          .time_budget_s = s->o->time_budget_s,
                          .interrupted = fkp_interrupted,
                          .progress = progress,
                          .user = s};
    note_head(s);
    fk_status status = fkp_eval_run(s->model, &s->requests, &s->candidates, &o, &s->eval);
    fkp_progress_end(&s->progress);
    s->judged = status == FK_OK;
    return status;
}

static fk_status run_session(session *s)
{
    char folder[FKP_PATH_SIZE];
    fk_model_options model = {.seed = s->cli->common.seed < 0 ? 0 : (uint64_t)s->cli->common.seed,
                              .max_layers = s->o->max_layers,
                              .cache_dir = s->cli->common.cache};
    FK_TRY(check_options(s));
    FK_TRY(fkp_parse_dtype(s->o->dtype, &model.dtype));
    FK_TRY(fkp_cli_device(s->cli, &s->device));
    FK_TRY(fkp_home_path("scenarios", folder));
    FK_TRY(fkp_scenario_open(s->o->scenario, folder, &s->scenario));
    FK_TRY(open_candidates(s)); /* before the model: a mistake there is known in a second */
    model.device = s->device;
    FK_TRY(fk_model_open(s->o->model ? s->o->model : s->scenario->model, &model, &s->model));
    FK_TRY(fkp_requests_create(s->scenario, s->model, s->o->max_requests, &s->requests));
    FK_TRY(judge(s));
    fkp_emit(s->cli, result_json(s));
    print_result(s);
    return FK_OK;
}

static int run(fkp_cli *cli, const void *values)
{
    session s = {.cli = cli, .o = values};
    int code = fkp_exit(cli, run_session(&s));
    if (code == FKP_EXIT_OK && s.eval.status != FKP_PASSED) code = FKP_EXIT_JUDGED;
    if (s.judged) fkp_eval_deinit(&s.eval);
    fkp_requests_deinit(&s.requests);
    fkp_candidate_set_close(&s.candidates);
    fk_model_close(s.model);
    fkp_scenario_close(s.scenario);
    return code;
}

static bool runs_candidates(const void *values)
{
    const eval_options *o = values;
    return o->candidates && !o->self_test;
}

const fkp_command fkp_command_eval = {
    .name = "eval",
    .summary = "a whole model, baseline against candidates: same tokens? how much faster?",
    .options = options,
    .options_size = sizeof(eval_options),
    .details = "Both sides answer the scenario's requests in turn (A B B A ...), greedy and to full length. Where tokens part, both\n"
               "go through the baseline's answer once more, and the logits tell a near tie from an error. Candidates share the\n"
               "models' process: give it what bench has passed. Exit code 1: an error in the tokens, a candidate that fails or gets no call.",
    .examples = {"fastkernels eval --scenario demo --candidates examples/candidates/good",
                 "fastkernels eval --scenario tiny --self-test"},
    .max_args = 0,
    .runs_candidates = runs_candidates,
    .run = run};
