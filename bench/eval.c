/* SPDX-License-Identifier: Apache-2.0 */
/* Alternated runs, comparison of tokens, and the judgement of near ties. */
#include "bench/eval.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <fk/door.h>

#include "bench/eval_encoder.h"
#include "bench/protocol.h"
#include "core/clean_text.h"
#include "runtime/engine.h"

#define WARM_UP_TOKENS 16

typedef struct evaluation {
    const fk_model *model;
    const fkp_requests *requests;
    const fkp_candidate_set *candidates;
    const fkp_eval_options *options;
    fkp_eval *out;
    fk_engine *baseline, *candidate;
    fkp_answers expected; /* the baseline's first run */
    bool *equal;          /* [requests] in all runs so far */
    double *baseline_s, *candidate_s; /* [max_pairs] */
    double *sides[2][3];  /* baseline, candidate: tok_s, ttft_ms, tpot_ms of each run */
} evaluation;

static void end(evaluation *v, fkp_case_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void end(evaluation *v, fkp_case_status status, const char *format, ...)
{
    if (v->out->status != FKP_PASSED) return; /* the first finding stands */
    va_list args;
    va_start(args, format);
    vsnprintf(v->out->detail, sizeof v->out->detail, format, args);
    va_end(args);
    fkp_clean_text(v->out->detail);
    v->out->status = status;
}

static void tell(const evaluation *v, const char *what, int done, int total)
{
    if (v->options->progress) v->options->progress(v->options->user, what, done, total);
}

/* ---- engines and single runs */

/* With the candidates whose operators are not in `without` (NULL: all); none at all when candidates is NULL. */
static fk_status open_engine(const evaluation *v, const fkp_candidate_set *candidates, const bool *without, fk_engine **out)
{
    fk_engine_options options = fkp_requests_engine(v->requests);
    options.threads = v->options->threads;
    FK_TRY(fk_engine_create(v->model, &options, out));
    return candidates ? fkp_candidate_set_install(candidates, without, fk_engine_ctx(*out)) : FK_OK;
}

/* A failure while a candidate is at the door is a finding, unless the user or the machine is the cause. */
static bool is_finding(fk_status status)
{
    return status != FK_OK && status != FK_ERROR_INTERRUPTED && status != FK_ERROR_MEMORY;
}

static fk_status run_candidate(evaluation *v, fk_engine *engine, const fkp_watch *watch, fkp_answers *answers)
{
    fkp_candidate_set_judged(v->candidates->count > 0);
    fk_status status = fkp_requests_run_watched(v->requests, engine, watch, answers);
    fkp_candidate_set_judged(false);
    if (!is_finding(status) || v->candidates->count == 0) return status;
    end(v, FKP_RUNTIME_ERROR, "%s", fk_error_message());
    return FK_OK;
}

/* The first few tokens of the first request: memory touched, matrix libraries tuned. */
static fk_status warm_up(evaluation *v, fk_engine *engine, bool candidate)
{
    fkp_request first = v->requests->items[0];
    if (first.max_tokens > WARM_UP_TOKENS) first.max_tokens = WARM_UP_TOKENS;
    fkp_requests one = {.items = &first, .count = 1, .max_num_seqs = 1};
    fkp_answers answers = {0};
    fkp_candidate_set_judged(candidate && v->candidates->count > 0);
    fk_status status = fkp_requests_run(&one, engine, v->options->interrupted, &answers);
    fkp_candidate_set_judged(false);
    fkp_answers_deinit(&answers);
    if (!candidate || !is_finding(status) || v->candidates->count == 0) return status;
    end(v, FKP_RUNTIME_ERROR, "%s", fk_error_message());
    return FK_OK;
}

static double median_of(const fkp_answers *a, bool first_token)
{
    double *values = malloc((size_t)a->count * sizeof *values), result = NAN;
    int n = 0;
    for (int64_t i = 0; values && i < a->count; i++) {
        if (first_token) values[n++] = 1e3 * a->first_s[i];
        else if (a->lengths[i] > 1) values[n++] = 1e3 * (a->last_s[i] - a->first_s[i]) / (double)(a->lengths[i] - 1);
    }
    if (n > 0) result = fkp_median(values, n);
    free(values);
    return result;
}

static void note_times(evaluation *v, int side, int run, const fkp_answers *a)
{
    v->sides[side][0][run] = (double)a->tokens / a->seconds;
    v->sides[side][1][run] = median_of(a, true);
    v->sides[side][2][run] = median_of(a, false);
    (side ? v->candidate_s : v->baseline_s)[run] = a->seconds;
}

/* Compares with the expected answers: the first difference of each request. */
static void compare(evaluation *v, const fkp_answers *found, int side)
{
    const fkp_answers *expected = &v->expected;
    for (int64_t r = 0; r < expected->count; r++) {
        int64_t n = expected->lengths[r], step = 0;
        while (step < n && step < found->lengths[r] && expected->ids[r][step] == found->ids[r][step]) step++;
        if (step == n && found->lengths[r] == n) continue;
        if (side == 0) {
            end(v, FKP_RUNTIME_ERROR, "the baseline itself gives other tokens in another run: request %lld, step %lld",
                (long long)r + 1, (long long)step);
            continue;
        }
        v->equal[r] = false;
        v->out->tokens_equal = false;
        if (found->lengths[r] != n)
            end(v, FKP_INCORRECT_NUMERICAL, "request %lld has %lld tokens instead of %lld", (long long)r + 1,
                (long long)found->lengths[r], (long long)n);
    }
}

/* ---- speed: A B B A A B B A ... */

static fk_status one_run(evaluation *v, int side, int run)
{
    fkp_answers answers = {0};
    fkp_watch watch = {.interrupted = v->options->interrupted};
    if (side == 0) FK_TRY(fkp_requests_run_watched(v->requests, v->baseline, &watch, &answers));
    else FK_TRY(run_candidate(v, v->candidate, &watch, &answers));
    if (v->out->status == FKP_RUNTIME_ERROR && answers.count == 0) return FK_OK;
    note_times(v, side, run, &answers);
    if (side == 0 && run == 0) {
        v->expected = answers;
        return FK_OK;
    }
    compare(v, &answers, side);
    fkp_answers_deinit(&answers);
    return FK_OK;
}

static fk_status alternate(evaluation *v)
{
    const fkp_eval_options *o = v->options;
    double start = fkp_now();
    int pair = 0;
    for (; pair < o->max_pairs && v->out->status == FKP_PASSED; pair++) {
        bool enough = pair >= o->min_pairs && pair % 2 == 0;
        double each = pair ? (fkp_now() - start) / pair : 0;
        if (enough && fkp_now() - start + 2 * each > o->time_budget_s) break;
        for (int half = 0; half < 2 && v->out->status == FKP_PASSED; half++) {
            tell(v, "timing", 2 * pair + half, 2 * o->max_pairs);
            FK_TRY(one_run(v, pair % 2 ? 1 - half : half, pair));
        }
        if (pair == 0)
            for (int i = 0; i < v->candidates->count; i++) /* warm-up calls do not count: the counts were reset after it */
                fk_door_counts(fk_engine_ctx(v->candidate), v->candidates->ops[i], &v->out->reached[i], &v->out->calls[i]);
    }
    v->out->pairs = v->out->status == FKP_PASSED ? pair : 0;
    return FK_OK;
}

static void summarize(evaluation *v)
{
    fkp_eval *out = v->out;
    int n = out->pairs;
    if (n < 4) return;
    for (int side = 0; side < 2; side++) {
        fkp_eval_side *to = side ? &out->candidate : &out->baseline;
        to->tok_s = fkp_median(v->sides[side][0], n);
        to->ttft_ms = fkp_median(v->sides[side][1], n);
        to->tpot_ms = fkp_median(v->sides[side][2], n);
        to->req_s = to->tok_s / (double)out->tokens * (double)out->requests;
    }
    if (fkp_ratio_of_blocks(v->baseline_s, v->candidate_s, n, 1, &out->factor))
        out->verdict = fkp_ratio_verdict(&out->factor);
}

/* ---- near ties */

/* A step at which the candidate, under the baseline's continuation, would go another way. */
typedef struct parting {
    int64_t request, step;
    int32_t candidate_id;
    double candidate_gap, baseline_gap, threshold;
} parting;

typedef struct partings {
    evaluation *v;
    parting *items;
    int64_t count, capacity;
    double units; /* threshold over the RMS of the logits */
    bool no_memory;
} partings;

static void find_parting(void *user, int64_t request, int64_t step, const fk_step_token *token, const float *logits)
{
    partings *p = user;
    if (token->sampled == token->id) return;
    if (p->count == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 64;
        parting *grown = realloc(p->items, (size_t)capacity * sizeof *grown);
        if (!grown) p->no_memory = true;
        if (!grown) return;
        p->items = grown;
        p->capacity = capacity;
    }
    p->items[p->count++] = (parting){.request = request, .step = step, .candidate_id = token->sampled,
                                     .candidate_gap = (double)logits[token->sampled] - (double)logits[token->id]};
}

static void measure_parting(void *user, int64_t request, int64_t step, const fk_step_token *token, const float *logits)
{
    partings *p = user;
    for (int64_t i = 0; i < p->count; i++) {
        parting *at = &p->items[i];
        if (at->request != request || at->step != step) continue;
        int64_t vocab_size = fk_model_get_info(p->v->model)->vocab_size;
        double square = 0;
        for (int64_t k = 0; k < vocab_size; k++) square += (double)logits[k] * (double)logits[k];
        at->baseline_gap = (double)logits[token->id] - (double)logits[at->candidate_id];
        at->threshold = p->units * sqrt(square / (double)vocab_size);
    }
}

/* How far two correct forward passes may differ in the gap of two logits, over their RMS. A layer rounds about 12 times on
 * its longest path; roundings add up like a random walk, so a logit is off by sqrt(12 L) units in the last place, and in
 * float32, where the sums are no wider than the storage, by sqrt(D) of those for sums of D terms. The gap of two passes
 * holds four such errors (factor 2), and four standard deviations leave nothing to chance (factor 4). */
static double threshold_units(const fk_model *model)
{
    int64_t hidden_size = 1024;
    fk_config_int_optional(fk_model_config(model), "hidden_size", 1, &hidden_size);
    double path = sqrt(12.0 * (double)fk_model_get_info(model)->num_layers);
    switch (fk_model_dtype(model)) {
    case FK_BF16:
        return 8 * path * 0x1p-9;
    case FK_F16:
        return 8 * path * 0x1p-12;
    default:
        return 8 * path * sqrt((double)hidden_size) * 0x1p-25;
    }
}

static bool is_near_tie(const parting *p)
{
    return fabs(p->candidate_gap) <= p->threshold && fabs(p->baseline_gap) <= p->threshold; /* NaN is none */
}

static void describe(evaluation *v, const parting *p)
{
    v->out->diverged = true;
    v->out->first = (fkp_divergence){.request = p->request, .step = p->step, .candidate_id = p->candidate_id,
                                     .baseline_id = v->expected.ids[p->request][p->step], .baseline_gap = p->baseline_gap,
                                     .candidate_gap = p->candidate_gap, .threshold = p->threshold, .near_tie = is_near_tie(p)};
}

/* Both engines go through the baseline's answers, in the same batches as before, and every step at which the candidate would
 * choose otherwise is looked at, not the first alone: behind a near tie there may be an error. */
static fk_status judge_partings(evaluation *v)
{
    partings p = {.v = v, .units = threshold_units(v->model)};
    fkp_answers answers = {0};
    fkp_watch watch = {.interrupted = v->options->interrupted, .forced = &v->expected, .token = find_parting, .user = &p};
    tell(v, "comparing logits", 0, 2);
    fk_engine_keep_logits(v->candidate, true);
    fk_status status = run_candidate(v, v->candidate, &watch, &answers);
    fkp_answers_deinit(&answers);
    if (status == FK_OK && p.count > 0) {
        tell(v, "comparing logits", 1, 2);
        watch.token = measure_parting;
        fk_engine_keep_logits(v->baseline, true);
        status = fkp_requests_run_watched(v->requests, v->baseline, &watch, &answers);
        fkp_answers_deinit(&answers);
    }
    if (status == FK_OK && p.no_memory) status = fk_fail(FK_ERROR_MEMORY, "out of memory for differing tokens");
    for (int64_t i = 0; status == FK_OK && i < p.count; i++) {
        const parting *at = &p.items[i];
        bool tie = is_near_tie(at);
        v->out->near_ties += tie;
        if (!v->out->diverged || (v->out->first.near_tie && !tie)) describe(v, at);
        if (!tie)
            end(v, FKP_INCORRECT_NUMERICAL,
                "request %lld, step %lld: token %d instead of %d, whose logit leads by %.4g in the baseline and trails by %.4g in the "
                "candidate; a near tie is below %.4g",
                (long long)at->request + 1, (long long)at->step, at->candidate_id, v->expected.ids[at->request][at->step],
                at->baseline_gap, at->candidate_gap, at->threshold);
    }
    if (status == FK_OK && p.count == 0 && !v->out->tokens_equal)
        end(v, FKP_INCORRECT_NUMERICAL, "tokens differ, but not when the same runs are repeated: the candidate's results vary");
    free(p.items);
    return status;
}

/* ---- candidates that other candidates stand above */

/* An L1 candidate below an L2 candidate that computes everything itself gets no call: it is run once without that one. */
static fk_status run_covered(evaluation *v)
{
    const fkp_candidate_set *c = v->candidates;
    bool any = false, *covering = calloc((size_t)c->count + 1, sizeof *covering);
    if (!covering) return fk_fail(FK_ERROR_MEMORY, "out of memory for %d candidates", c->count);
    for (int i = 0; i < c->count; i++)
        for (int k = 0; v->out->reached[i] == 0 && k < c->count; k++)
            if (v->out->reached[k] > 0 && fk_op_composed_of(c->ops[k], c->ops[i]->name)) {
                v->out->covered_by[i] = c->ops[k]->name;
                covering[k] = any = true;
            }
    fk_engine *engine = NULL, *all = v->candidate;
    fkp_answers answers = {0};
    fk_status status = any ? open_engine(v, c, covering, &engine) : FK_OK;
    if (status == FK_OK && any) {
        tell(v, "covered candidates", 0, 1);
        status = run_candidate(v, engine, &(fkp_watch){.interrupted = v->options->interrupted}, &answers);
        if (status == FK_OK && answers.count > 0) {
            for (int i = 0; i < c->count; i++)
                if (v->out->covered_by[i])
                    fk_door_counts(fk_engine_ctx(engine), c->ops[i], &v->out->reached[i], &v->out->calls[i]);
            bool equal = v->out->tokens_equal;
            v->out->tokens_equal = true;
            compare(v, &answers, 1);
            v->candidate = engine;
            if (!v->out->tokens_equal && v->out->status == FKP_PASSED) status = judge_partings(v);
            v->candidate = all;
            v->out->tokens_equal = v->out->tokens_equal && equal;
        }
    }
    fkp_answers_deinit(&answers);
    fk_engine_destroy(engine);
    free(covering);
    return status;
}

static void check_reached(evaluation *v)
{
    for (int i = 0; i < v->candidates->count; i++)
        if (v->out->reached[i] == 0)
            end(v, FKP_RUNTIME_ERROR, "no call reached candidate %s%s", v->candidates->ops[i]->name,
                v->out->calls[i] == 0 && !v->out->covered_by[i] ? ": the model never calls the operator" : "");
}

/* ---- all of it */

static fk_status allocate(evaluation *v)
{
    size_t pairs = (size_t)v->options->max_pairs, n = (size_t)v->candidates->count + 1;
    v->out->reached = calloc(n, sizeof *v->out->reached);
    v->out->calls = calloc(n, sizeof *v->out->calls);
    v->out->covered_by = calloc(n, sizeof *v->out->covered_by);
    v->equal = malloc((size_t)v->requests->count * sizeof *v->equal);
    v->baseline_s = calloc(pairs, sizeof(double));
    v->candidate_s = calloc(pairs, sizeof(double));
    bool good = v->out->reached && v->out->calls && v->out->covered_by && v->equal && v->baseline_s && v->candidate_s;
    for (int i = 0; i < 6; i++) {
        v->sides[i / 3][i % 3] = calloc(pairs, sizeof(double));
        good = good && v->sides[i / 3][i % 3];
    }
    if (!good) return fk_fail(FK_ERROR_MEMORY, "out of memory for an evaluation");
    for (int64_t r = 0; r < v->requests->count; r++) v->equal[r] = true;
    return FK_OK;
}

static fk_status evaluate(evaluation *v)
{
    FK_TRY(allocate(v));
    FK_TRY(open_engine(v, NULL, NULL, &v->baseline));
    FK_TRY(open_engine(v, v->candidates, NULL, &v->candidate));
    tell(v, "warming up", 0, 1);
    FK_TRY(warm_up(v, v->baseline, false));
    FK_TRY(warm_up(v, v->candidate, true));
    fk_door_reset_counts(fk_engine_ctx(v->candidate));
    FK_TRY(alternate(v));
    summarize(v);
    if (v->out->status == FKP_PASSED && !v->out->tokens_equal) FK_TRY(judge_partings(v));
    for (int64_t r = 0; r < v->requests->count; r++) v->out->equal_requests += v->equal[r];
    if (v->out->status == FKP_PASSED) FK_TRY(run_covered(v));
    check_reached(v);
    return FK_OK;
}

fk_status fkp_eval_run(const fk_model *model, const fkp_requests *requests, const fkp_candidate_set *candidates,
                       const fkp_eval_options *options, fkp_eval *out)
{
    if (fk_model_is_encoder(model)) return fkp_eval_encoder_run(model, requests, candidates, options, out);
    evaluation v = {.model = model, .requests = requests, .candidates = candidates, .options = options, .out = out};
    double start = fkp_now();
    *out = (fkp_eval){.status = FKP_PASSED, .tokens_equal = true, .requests = requests->count};
    for (int64_t i = 0; i < requests->count; i++) out->tokens += requests->items[i].max_tokens;
    fk_status status = evaluate(&v);
    out->seconds = fkp_now() - start;
    fkp_answers_deinit(&v.expected);
    fk_engine_destroy(v.baseline);
    fk_engine_destroy(v.candidate);
    free(v.equal);
    free(v.baseline_s);
    free(v.candidate_s);
    for (int i = 0; i < 6; i++) free(v.sides[i / 3][i % 3]);
    if (status != FK_OK) fkp_eval_deinit(out);
    return status;
}

void fkp_eval_deinit(fkp_eval *eval)
{
    free(eval->reached);
    free(eval->calls);
    free(eval->covered_by);
    eval->reached = eval->calls = NULL;
    eval->covered_by = NULL;
}
