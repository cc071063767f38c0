/* SPDX-License-Identifier: Apache-2.0 */
/* Alternated runs of an encoder with and without candidates, and the smallest cosine of any of their vectors. */
#include "bench/eval_encoder.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <fk/door.h>

#include "bench/encoder_runs.h"
#include "bench/protocol.h"
#include "core/clean_text.h"

typedef struct evaluation {
    const fk_model *model;
    const fkp_requests *requests;
    const fkp_candidate_set *candidates;
    const fkp_eval_options *options;
    fkp_eval *out;
    fk_embedder *sides[2]; /* baseline, candidates */
    fkp_encoded expected;  /* the baseline's first run */
    double *seconds[2];    /* [max_pairs] */
    bool *equal;           /* [requests] in all runs so far */
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

/* How far apart the directions of two correct vectors may be. A layer rounds about 12 times on its longest path and roundings add up
 * like a random walk, so a vector is off by sqrt(12 L) units in the last place, relative to its length; in float32, where the sums
 * are no wider than the storage, by sqrt(D) of those for sums of D terms. Two passes hold sqrt(2) of that; three of those leave room.
 * An angle e has the cosine 1 - e^2/2; below the resolution of the vectors themselves nothing is asked. */
static double least_cosine(const fk_model *model)
{
    int64_t hidden_size = 1024;
    fk_config_int_optional(fk_model_config(model), "hidden_size", 1, &hidden_size);
    fk_dtype dtype = fk_model_dtype(model);
    double unit = dtype == FK_BF16 ? 0x1p-9 : dtype == FK_F16 ? 0x1p-12 : 0x1p-25 * sqrt((double)hidden_size);
    double angle = 3 * sqrt(2) * sqrt(12.0 * (double)fk_model_get_info(model)->num_layers) * unit;
    return 1 - (angle < 1e-6 ? 1e-6 : angle) * (angle < 1e-6 ? 1e-6 : angle) / 2;
}

static double cosine(const float *a, const float *b, int64_t n)
{
    double dot = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        dot += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return dot / sqrt(aa * bb); /* NaN when one is zero or holds NaN */
}

/* A score is a sum of cosines: one a query token, or one. It may be off by as much as each of those. */
static void compare_scores(evaluation *v, const fkp_encoded *found)
{
    const fk_vectors *expected = &v->expected.vectors;
    double terms = (double)(expected->starts[1] - expected->starts[0]), allowed = terms * sqrt(2 * (1 - v->out->metric.threshold));
    for (int64_t r = 0; r < v->requests->count; r++) {
        double difference = fabs((double)found->scores[r] - (double)v->expected.scores[r]);
        double rounding = fabs((double)v->expected.scores[r]) * (fk_model_dtype(v->model) == FK_BF16 ? 0x1p-7 : fk_model_dtype(v->model) == FK_F16 ? 0x1p-10 : 0x1p-20);
        if (difference <= allowed + rounding) continue; /* NaN is above */
        v->equal[r] = false;
        end(v, FKP_INCORRECT_NUMERICAL, "request %lld: score %.6g instead of %.6g; %.3g apart are allowed", (long long)r + 1,
            (double)found->scores[r], (double)v->expected.scores[r], allowed + rounding);
    }
}

static void compare(evaluation *v, const fkp_encoded *found, int side)
{
    const fk_vectors *expected = &v->expected.vectors;
    int64_t n = expected->features;
    for (int64_t r = 0; r < v->requests->count; r++)
        for (int64_t row = expected->starts[r]; row < expected->starts[r + 1]; row++) {
            double c = cosine(expected->values + row * n, found->vectors.values + row * n, n);
            if (side == 0 && c < v->out->metric.threshold)
                end(v, FKP_RUNTIME_ERROR, "the baseline itself gives another vector in another run: request %lld", (long long)r + 1);
            if (side == 0) continue;
            if (!isnan(v->out->metric.value) && !(c >= v->out->metric.value)) v->out->metric.value = c;
            if (c >= v->out->metric.threshold) continue;
            v->equal[r] = false;
            end(v, FKP_INCORRECT_NUMERICAL, "request %lld, vector %lld: cosine %.9g to the baseline's; at least %.9g is wanted",
                (long long)r + 1, (long long)(row - expected->starts[r]) + 1, c, v->out->metric.threshold);
        }
    if (side == 1) compare_scores(v, found);
}

/* ---- runs */

static fk_status open_side(const evaluation *v, const fkp_candidate_set *candidates, const bool *without, fk_embedder **out)
{
    fk_embedder_options options = fkp_encoder_options(v->requests);
    options.threads = v->options->threads;
    FK_TRY(fk_embedder_create(v->model, &options, out));
    return candidates ? fkp_candidate_set_install(candidates, without, fk_embedder_ctx(*out)) : FK_OK;
}

/* A failure while a candidate is at the door is a finding, unless the user or the machine is the cause; then there are no vectors. */
static fk_status run_side(evaluation *v, fk_embedder *embedder, bool candidate, fkp_encoded *out)
{
    bool judged = candidate && v->candidates->count > 0;
    fkp_candidate_set_judged(judged);
    fk_status status = fkp_encoder_run(v->requests, embedder, v->options->interrupted, out);
    fkp_candidate_set_judged(false);
    if (status == FK_OK || !judged || status == FK_ERROR_INTERRUPTED || status == FK_ERROR_MEMORY) return status;
    end(v, FKP_RUNTIME_ERROR, "%s", fk_error_message());
    return FK_OK;
}

static fk_status one_run(evaluation *v, int side, int run)
{
    fkp_encoded found;
    FK_TRY(run_side(v, v->sides[side], side == 1, &found));
    if (!found.scores) return FK_OK;
    v->seconds[side][run] = found.seconds;
    if (side == 0 && run == 0) {
        v->expected = found;
        return FK_OK;
    }
    compare(v, &found, side);
    fkp_encoded_deinit(&found);
    return FK_OK;
}

/* A B B A A B B A ... */
static fk_status alternate(evaluation *v)
{
    const fkp_eval_options *o = v->options;
    double start = fkp_now();
    int pair = 0;
    for (; pair < o->max_pairs && v->out->status == FKP_PASSED; pair++) {
        double each = pair ? (fkp_now() - start) / pair : 0;
        if (pair >= o->min_pairs && pair % 2 == 0 && fkp_now() - start + 2 * each > o->time_budget_s) break;
        for (int half = 0; half < 2 && v->out->status == FKP_PASSED; half++) {
            tell(v, "timing", 2 * pair + half, 2 * o->max_pairs);
            FK_TRY(one_run(v, pair % 2 ? 1 - half : half, pair));
        }
        if (pair == 0)
            for (int i = 0; i < v->candidates->count; i++) /* warm-up calls do not count: the counts were reset after it */
                fk_door_counts(fk_embedder_ctx(v->sides[1]), v->candidates->ops[i], &v->out->reached[i], &v->out->calls[i]);
    }
    v->out->pairs = v->out->status == FKP_PASSED ? pair : 0;
    return FK_OK;
}

static fk_status warm_up(evaluation *v, int side)
{
    fkp_encoded found;
    FK_TRY(run_side(v, v->sides[side], side == 1, &found));
    fkp_encoded_deinit(&found);
    return FK_OK;
}

static void summarize(evaluation *v)
{
    fkp_eval *out = v->out;
    int n = out->pairs;
    if (n < 4) return;
    for (int side = 0; side < 2; side++) {
        double median = fkp_median(v->seconds[side], n);
        *(side ? &out->candidate : &out->baseline) = (fkp_eval_side){.tok_s = (double)out->tokens / median,
                                                                     .req_s = (double)out->requests / median,
                                                                     .ttft_ms = NAN, .tpot_ms = NAN};
    }
    if (fkp_ratio_of_blocks(v->seconds[0], v->seconds[1], n, 1, &out->factor)) out->verdict = fkp_ratio_verdict(&out->factor);
}

/* A candidate below another one that computes everything itself gets no call: it is run once without that one. */
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
    fk_embedder *embedder = NULL;
    fkp_encoded found = {0};
    fk_status status = any ? open_side(v, c, covering, &embedder) : FK_OK;
    if (status == FK_OK && any) {
        tell(v, "covered candidates", 0, 1);
        status = run_side(v, embedder, true, &found);
        for (int i = 0; i < c->count; i++)
            if (v->out->covered_by[i]) fk_door_counts(fk_embedder_ctx(embedder), c->ops[i], &v->out->reached[i], &v->out->calls[i]);
        if (status == FK_OK && found.scores) compare(v, &found, 1);
    }
    fkp_encoded_deinit(&found);
    fk_embedder_destroy(embedder);
    free(covering);
    return status;
}

/* ---- all of it */

static fk_status allocate(evaluation *v)
{
    size_t pairs = (size_t)v->options->max_pairs, n = (size_t)v->candidates->count + 1;
    v->out->reached = calloc(n, sizeof *v->out->reached);
    v->out->calls = calloc(n, sizeof *v->out->calls);
    v->out->covered_by = calloc(n, sizeof *v->out->covered_by);
    v->equal = malloc((size_t)v->requests->count * sizeof *v->equal);
    v->seconds[0] = calloc(pairs, sizeof(double));
    v->seconds[1] = calloc(pairs, sizeof(double));
    if (!v->out->reached || !v->out->calls || !v->out->covered_by || !v->equal || !v->seconds[0] || !v->seconds[1])
        return fk_fail(FK_ERROR_MEMORY, "out of memory for an evaluation");
    for (int64_t r = 0; r < v->requests->count; r++) v->equal[r] = true;
    return FK_OK;
}

static fk_status evaluate(evaluation *v)
{
    fkp_eval *out = v->out;
    FK_TRY(allocate(v));
    FK_TRY(open_side(v, NULL, NULL, &v->sides[0]));
    FK_TRY(open_side(v, v->candidates, NULL, &v->sides[1]));
    tell(v, "warming up", 0, 1);
    FK_TRY(warm_up(v, 0));
    FK_TRY(warm_up(v, 1));
    fk_door_reset_counts(fk_embedder_ctx(v->sides[1]));
    FK_TRY(alternate(v));
    summarize(v);
    if (out->status == FKP_PASSED) FK_TRY(run_covered(v));
    for (int64_t r = 0; r < v->requests->count; r++) out->equal_requests += v->equal[r];
    out->tokens_equal = out->equal_requests == out->requests;
    for (int i = 0; i < v->candidates->count; i++)
        if (out->reached[i] == 0)
            end(v, FKP_RUNTIME_ERROR, "no call reached candidate %s%s", v->candidates->ops[i]->name,
                out->calls[i] == 0 && !out->covered_by[i] ? ": the model never calls the operator" : "");
    return FK_OK;
}

fk_status fkp_eval_encoder_run(const fk_model *model, const fkp_requests *requests, const fkp_candidate_set *candidates,
                               const fkp_eval_options *options, fkp_eval *out)
{
    evaluation v = {.model = model, .requests = requests, .candidates = candidates, .options = options, .out = out};
    double start = fkp_now();
    *out = (fkp_eval){.status = FKP_PASSED, .requests = requests->count,
                      .metric = {.name = "cosine", .value = 1, .threshold = least_cosine(model)}};
    for (int64_t i = 0; i < requests->count; i++) out->tokens += requests->items[i].length;
    fk_status status = evaluate(&v);
    out->seconds = fkp_now() - start;
    fkp_encoded_deinit(&v.expected);
    fk_embedder_destroy(v.sides[0]);
    fk_embedder_destroy(v.sides[1]);
    free(v.equal);
    free(v.seconds[0]);
    free(v.seconds[1]);
    if (status != FK_OK) fkp_eval_deinit(out);
    return status;
}
