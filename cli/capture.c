/* SPDX-License-Identifier: Apache-2.0 */
/* `capture`: runs a scenario and records the inputs of every operator at the door. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/capture.h"
#include "bench/encoder_runs.h"
#include "bench/scenario.h"
#include "cli/interrupt.h"
#include "cli/list.h"
#include "cli/output.h"
#include "core/json.h"

typedef struct capture_options {
    const char *scenario, *output;
    int64_t max_bytes, max_requests, max_layers;
    bool resume;
} capture_options;

#define AT(field) offsetof(capture_options, field)
static const fkp_option options[] = {
    {"scenario", FKP_OPT_STRING, AT(scenario), "S|FILE", "what to run (list scenarios shows them)", .max = 0},
    {"output", FKP_OPT_STRING, AT(output), "DIR", "folder of the capture; default captures/<scenario>", .letter = 'o'},
    {"max-bytes", FKP_OPT_INT, AT(max_bytes), "N", "values of float tensors are kept up to so many bytes an operator", "8388608", .min = 0, .max = 1e15},
    {"max-requests", FKP_OPT_INT, AT(max_requests), "N", "the first N requests only; 0 is all", .min = 0, .max = 1e9},
    {"max-layers", FKP_OPT_INT, AT(max_layers), "N", "the model's first N layers only; 0 is all", .min = 0, .max = 1e6},
    {"resume", FKP_OPT_FLAG, AT(resume), NULL, "keep a capture of this scenario that is complete", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

typedef struct session {
    fkp_cli *cli;
    const capture_options *o;
    char folder[1024];
    fkp_scenario *scenario;
    fk_model *model;
    fkp_requests requests;
    fk_engine *engine;     /* of a language model */
    fk_embedder *embedder; /* of an encoder */
    fkp_capture *capture;
    json_t *facts;
} session;

/* The folder, made with those above it; it must be writable before the run, not after it. */
static fk_status make_folder(const char *path)
{
    char part[1024];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", part, strerror(errno));
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", path, strerror(errno));
    if (access(path, W_OK | X_OK) != 0) return fk_fail(FK_ERROR_IO, "cannot write into the folder %s: %s", path, strerror(errno));
    return FK_OK;
}

static fk_status summary_path(const session *s, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/capture.json", s->folder) < size) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "path too long: %s", s->folder);
}

/* The summary of a complete capture of the same scenario, model and dtype that lies there; else NULL. */
static json_t *find_complete(const session *s)
{
    char path[1200];
    json_t *old = NULL;
    if (summary_path(s, path, sizeof path) != FK_OK ||
        fkp_json_load_file(path, (fkp_json_limits){.max_depth = 16, .max_values = 100000}, &old) != FK_OK)
        return NULL;
    bool same = json_is_true(json_object_get(old, "complete"));
    const char *key;
    json_t *value;
    json_object_foreach(s->facts, key, value) same = same && json_equal(json_object_get(old, key), value);
    if (same) return old;
    json_decref(old);
    return NULL;
}

/* Files of an earlier capture: they would be read as part of this one. */
static void remove_old_files(const session *s)
{
    for (int i = 0; i < fk_op_count(); i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s.json", s->folder, fk_op_at(i)->name);
        remove(path);
        snprintf(path, sizeof path, "%s/%s.safetensors", s->folder, fk_op_at(i)->name);
        remove(path);
    }
}

static fk_status prepare(session *s)
{
    char scenarios[FKP_PATH_SIZE];
    const capture_options *o = s->o;
    if (!o->scenario) return fk_fail(FK_ERROR_INVALID, "which scenario? --scenario S, for example --scenario demo");
    FK_TRY(fkp_scenarios_folder(scenarios));
    FK_TRY(fkp_scenario_open(o->scenario, scenarios, &s->scenario));
    int n = o->output ? snprintf(s->folder, sizeof s->folder, "%s", o->output)
                      : snprintf(s->folder, sizeof s->folder, "captures/%s", s->scenario->name);
    if ((size_t)n >= sizeof s->folder) return fk_fail(FK_ERROR_INVALID, "path too long: %s", o->output ? o->output : s->scenario->name);
    FK_TRY(make_folder(s->folder));
    fk_model_options model = {.seed = s->cli->common.seed < 0 ? 0 : (uint64_t)s->cli->common.seed,
                              .max_layers = o->max_layers, .cache_dir = s->cli->common.cache};
    FK_TRY(fkp_cli_device(s->cli, &model.device));
    FK_TRY(fk_model_open(s->scenario->model, &model, &s->model));
    FK_TRY(fkp_requests_create(s->scenario, s->model, o->max_requests, &s->requests));
    char device[32];
    s->facts = json_object();
    json_object_set_new(s->facts, "scenario", fkp_json_text(s->scenario->name));
    json_object_set_new(s->facts, "model", fkp_json_text(s->scenario->model));
    json_object_set_new(s->facts, "dtype", json_string(fk_dtype_name(fk_model_dtype(s->model))));
    json_object_set_new(s->facts, "device", json_string(fk_device_format(model.device, device, sizeof device)));
    json_object_set_new(s->facts, "requests", json_integer(s->requests.count));
    json_object_set_new(s->facts, "max_layers", json_integer(o->max_layers));
    json_object_set_new(s->facts, "max_bytes", json_integer(o->max_bytes));
    return FK_OK;
}

static fk_status create_engine(session *s, fk_ctx **ctx)
{
    if (fk_model_is_encoder(s->model)) {
        fk_embedder_options options = fkp_encoder_options(&s->requests);
        options.threads = (int)s->cli->common.threads;
        FK_TRY(fk_embedder_create(s->model, &options, &s->embedder));
        *ctx = fk_embedder_ctx(s->embedder);
        return FK_OK;
    }
    fk_engine_options options = fkp_requests_engine(&s->requests);
    options.threads = (int)s->cli->common.threads;
    FK_TRY(fk_engine_create(s->model, &options, &s->engine));
    *ctx = fk_engine_ctx(s->engine);
    return FK_OK;
}

static fk_status run_requests(session *s)
{
    fkp_answers answers = {0};
    fkp_encoded encoded = {0};
    fk_status status = s->embedder ? fkp_encoder_run(&s->requests, s->embedder, fkp_interrupted, &encoded)
                                   : fkp_requests_run(&s->requests, s->engine, fkp_interrupted, &answers);
    fkp_answers_deinit(&answers);
    fkp_encoded_deinit(&encoded);
    return status;
}

/* Runs and records. What was recorded before an interruption is written too. */
static fk_status run_scenario(session *s, bool *verified)
{
    fk_ctx *ctx;
    FK_TRY(create_engine(s, &ctx));
    FK_TRY(fkp_capture_create(s->o->max_bytes, &s->capture));
    FK_TRY(fkp_capture_attach(s->capture, ctx));
    fk_status status = run_requests(s);
    char message[512];
    snprintf(message, sizeof message, "%s", fk_error_message());
    fk_status detached = fkp_capture_detach(s->capture, ctx);
    *verified = detached == FK_OK;
    if (status == FK_OK) return detached;
    return fk_fail(status, "%s", message);
}

static fk_status write_files(session *s, bool complete, bool verified)
{
    char path[1200];
    fkp_capture_totals totals = fkp_capture_total(s->capture);
    FK_TRY(summary_path(s, path, sizeof path));
    remove(path); /* it says complete; the files are not, until the end */
    remove_old_files(s);
    FK_TRY(fkp_capture_write(s->capture, s->folder, s->facts));
    json_t *result = fkp_result_full(s->cli, "capture");
    json_object_update(result, s->facts);
    json_object_set_new(result, "operators", json_integer(totals.operators));
    json_object_set_new(result, "classes_instrumented", json_integer(fk_op_count()));
    json_object_set_new(result, "classes_executed", json_integer(totals.operators));
    json_object_set_new(result, "variants", json_integer(totals.cases));
    json_object_set_new(result, "calls", json_integer(totals.calls));
    json_object_set_new(result, "kept_bytes", json_integer(totals.kept_bytes));
    json_object_set_new(result, "verified", json_boolean(verified));
    json_object_set_new(result, "complete", json_boolean(complete));
    fk_status status = fkp_json_write_file(result, path);
    fkp_print(s->cli, "%s: %lld calls of %d operators, %d different; the door's counts %s; %.1f MB of values\n", s->folder,
              (long long)totals.calls, totals.operators, totals.cases, verified ? "agree" : "DISAGREE", (double)totals.kept_bytes / 1e6);
    fkp_emit(s->cli, result);
    return status;
}

static fk_status capture_scenario(session *s)
{
    FK_TRY(prepare(s));
    json_t *old = s->o->resume ? find_complete(s) : NULL;
    if (old) {
        fkp_emit(s->cli, old);
        fkp_print(s->cli, "%s: complete already\n", s->folder);
        return FK_OK;
    }
    bool verified = false;
    fk_status status = run_scenario(s, &verified);
    if (!s->capture || (status != FK_OK && status != FK_ERROR_INTERRUPTED)) return status;
    FK_TRY(write_files(s, status == FK_OK, verified));
    return status == FK_OK ? FK_OK : fk_fail(status, "interrupted; %s holds what was recorded", s->folder);
}

static int run(fkp_cli *cli, const void *values)
{
    session s = {.cli = cli, .o = values};
    fk_status status = capture_scenario(&s);
    int code = fkp_exit(cli, status);
    fkp_capture_destroy(s.capture);
    if (s.engine) fk_engine_destroy(s.engine);
    fk_embedder_destroy(s.embedder);
    fkp_requests_deinit(&s.requests);
    if (s.model) fk_model_close(s.model);
    if (s.scenario) fkp_scenario_close(s.scenario);
    json_decref(s.facts);
    return code;
}

const fkp_command fkp_command_capture = {
    .name = "capture",
    .summary = "record the inputs of every operator while a scenario runs",
    .options = options,
    .options_size = sizeof(capture_options),
    .details = "One case for every combination of scalars, shapes, strides and dtypes, with its count. Integer tensors are kept\n"
               "always, float tensors up to --max-bytes an operator, else their mean and deviation. bench --captures DIR takes it.",
    .examples = {"fastkernels capture --scenario demo", "fastkernels capture --scenario tiny -o captures/tiny --max-requests 2"},
    .run = run};
