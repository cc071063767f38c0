/* SPDX-License-Identifier: Apache-2.0 */
/* `run`: one model, one prompt, the answer as it comes. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fk/door.h>
#include <fk/model.h>

#include "bench/candidate_set.h"
#include "cli/interrupt.h"
#include "cli/model_input.h"
#include "cli/output.h"
#include "cli/run_embed.h"
#include "runtime/engine.h"
#include "runtime/generation.h"
#include "runtime/prompt.h"
#include "runtime/trace.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"

typedef struct run_options {
    const char *model, *dtype, *prompt, *prompt_ids, *file, *system, *trace, *candidates, *output, *search;
    bool raw, ignore_eos, references_only, embed;
    int64_t max_tokens, logits, best;
    fkp_given_int top_k, logprobs;
    fkp_given_real temperature, top_p, min_p, repetition, presence, frequency; /* not given: as the model's generation_config says */
    fkp_list stop;
} run_options;

#define AT(field) offsetof(run_options, field)
static const fkp_option options[] = {
    {"model", FKP_OPT_STRING, AT(model), "M|PATH", "smollm2-135m, llama:tiny, a GGUF file, a Hugging Face folder (list models)", .max = 0},
    {"prompt", FKP_OPT_STRING, AT(prompt), "T", "what to say; without it --file, --prompt-ids or stdin", .letter = 0},
    {"prompt-ids", FKP_OPT_STRING, AT(prompt_ids), "1,2", "the prompt as token ids", .letter = 0},
    {"file", FKP_OPT_STRING, AT(file), "F", "the prompt from a file; - is stdin", .letter = 0},
    {"raw", FKP_OPT_FLAG, AT(raw), NULL, "continue the prompt as it is, without the model's chat template", .letter = 0},
    {"system", FKP_OPT_STRING, AT(system), "T", "system message of the chat", .letter = 0},
    {"max-tokens", FKP_OPT_INT, AT(max_tokens), "N", "most new tokens; 0: to the end of the context", "256", .min = 0, .max = 1e9},
    {"temperature", FKP_OPT_GIVEN_REAL, AT(temperature), "X", "0 takes the most probable token, more is bolder; not given, as the model's authors say (generation_config.json), else 0", .min = 0, .max = 100},
    {"top-p", FKP_OPT_GIVEN_REAL, AT(top_p), "P", "sample from the most probable tokens of this share; 1: all", .min = 0, .max = 1},
    {"min-p", FKP_OPT_GIVEN_REAL, AT(min_p), "P", "sample from tokens with at least this share of the largest probability; 0: all", .min = 0, .max = 1},
    {"top-k", FKP_OPT_GIVEN_INT, AT(top_k), "K", "sample from so many tokens; 0: all", .min = 0, .max = 1e9},
    {"repetition-penalty", FKP_OPT_GIVEN_REAL, AT(repetition), "R", "above 1 makes tokens of prompt and answer less probable; 1: none", .min = 0.01, .max = 10},
    {"presence-penalty", FKP_OPT_GIVEN_REAL, AT(presence), "X", "above 0 makes tokens that the answer has less probable; 0: none", .min = -2, .max = 2},
    {"frequency-penalty", FKP_OPT_GIVEN_REAL, AT(frequency), "X", "the same, for each time that it has them; 0: none", .min = -2, .max = 2},
    {"stop", FKP_OPT_LIST, AT(stop), "T", "end before this text; may be given several times", .letter = 0},
    {"ignore-eos", FKP_OPT_FLAG, AT(ignore_eos), NULL, "go on when the model ends its answer", .letter = 0},
    {"logits", FKP_OPT_INT, AT(logits), "N", "also show the N largest logits after the prompt", "0", .min = 0, .max = 1e9},
    {"logprobs", FKP_OPT_GIVEN_INT, AT(logprobs), "N", "the log-probability of each token of the answer, and the N largest beside it", .min = 0, .max = 1e6},
    {"embed", FKP_OPT_FLAG, AT(embed), NULL, "the vector that an encoder (minilm-l6) makes of the text", .letter = 0},
    {"search", FKP_OPT_STRING, AT(search), "FILE", "the passages of FILE that fit the prompt best, by an encoder; - is stdin", .letter = 0},
    {"best", FKP_OPT_INT, AT(best), "N", "with --search: show so many passages", "10", .min = 1, .max = 1e9},
    {"candidates", FKP_OPT_STRING, AT(candidates), "DIR", "run with these kernels", .letter = 0},
    {"references-only", FKP_OPT_FLAG, AT(references_only), NULL, "run the C references alone: slow, the specification", .letter = 0},
    {"trace", FKP_OPT_STRING, AT(trace), "FILE", "write a time line of all operator calls for Perfetto", .letter = 0},
    {"dtype", FKP_OPT_STRING, AT(dtype), "T", "f32, bf16 or f16; without it f32 on the CPU, bf16 on a GPU", .letter = 0},
    {"output", FKP_OPT_STRING, AT(output), "FILE", "write the text there too", .letter = 'o'},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

/* One run from prompt to answer. */
typedef struct session {
    fkp_cli *cli;
    const run_options *o;
    fk_model *model;
    fk_engine *engine;
    fkp_candidate_set candidates;
    fk_trace *trace;
    fk_token_list prompt, answer;
    fk_detokenizer *detokenizer; /* NULL without a tokenizer */
    fk_stop_matcher *stops;
    fk_bytes text, fresh, cut; /* the answer; what a token added; the same after stop strings */
    FILE *output;
    const char *finish;
    json_t *top_logits, *logprobs;
    double prefill_s, decode_s;
} session;

/* ---- output */

static fk_status show(session *s, const char *data, size_t bytes)
{
    if (bytes == 0) return FK_OK;
    fkp_print(s->cli, "%.*s", (int)bytes, data);
    fkp_flush(s->cli);
    if (s->output && fwrite(data, 1, bytes, s->output) != bytes)
        return fk_fail(FK_ERROR_IO, "cannot write %s: %s", s->o->output, strerror(errno));
    return fk_bytes_append(&s->text, data, bytes);
}

/* Sends the token's text on its way; *stopped when a stop string is complete. */
static fk_status show_token(session *s, int32_t id, bool last, bool *stopped)
{
    char number[16];
    FK_TRY(fk_token_list_push(&s->answer, id));
    if (!s->detokenizer) {
        snprintf(number, sizeof number, "%s%d", s->answer.count > 1 ? " " : "", id);
        return show(s, number, strlen(number));
    }
    fk_bytes_clear(&s->fresh);
    fk_bytes_clear(&s->cut);
    FK_TRY(fk_detokenizer_push(s->detokenizer, id, &s->fresh));
    if (last) FK_TRY(fk_detokenizer_finish(s->detokenizer, &s->fresh));
    FK_TRY(fk_stop_matcher_push(s->stops, s->fresh.data, s->fresh.bytes, &s->cut, stopped));
    if (last) FK_TRY(fk_stop_matcher_finish(s->stops, &s->cut));
    return show(s, s->cut.data, s->cut.bytes);
}

typedef struct ranked {
    float value;
    int32_t id;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The N largest logits less `base` as [[id, value], ...], in falling order. */
static fk_status rank_logits(session *s, const float *logits, int64_t n, double base, json_t **out)
{
    int64_t vocab = fk_model_get_info(s->model)->vocab_size;
    ranked *all = malloc((size_t)vocab * sizeof *all);
    if (!all) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld logits", (long long)vocab);
    for (int64_t i = 0; i < vocab; i++) all[i] = (ranked){logits[i], (int32_t)i};
    qsort(all, (size_t)vocab, sizeof *all, by_value);
    *out = json_array();
    for (int64_t i = 0; i < n && i < vocab; i++)
        json_array_append_new(*out, json_pack("[i, o]", all[i].id, fkp_json_real((double)all[i].value - base)));
    free(all);
    return FK_OK;
}

/* Logarithm of the sum of the exponentials: a logit less it is the logarithm of a probability. */
static double log_sum_exp(const float *logits, int64_t count)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, (double)logits[i]);
    for (int64_t i = 0; i < count; i++) sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

/* The chosen token's log-probability and the largest ones, as the model gives them: before temperature, cuts and penalties. */
static fk_status note_logprobs(session *s, const float *logits, int32_t id)
{
    json_t *top = NULL;
    double base = log_sum_exp(logits, fk_model_get_info(s->model)->vocab_size);
    if (s->o->logprobs.value > 0) FK_TRY(rank_logits(s, logits, s->o->logprobs.value, base, &top));
    if (!s->logprobs) s->logprobs = json_array();
    json_array_append_new(s->logprobs, json_pack("{s:i, s:o, s:o}", "id", id, "logprob", fkp_json_real((double)logits[id] - base), "top",
                                                 top ? top : json_array()));
    return FK_OK;
}

static void print_logits(session *s)
{
    const fk_tokenizer *tokenizer = fk_model_tokenizer(s->model);
    size_t n = json_array_size(s->top_logits);
    fkp_print(s->cli, "\nlargest logits after the prompt:\n");
    for (size_t i = 0; i < n && i < 50; i++) {
        json_t *pair = json_array_get(s->top_logits, i);
        int32_t id = (int32_t)json_integer_value(json_array_get(pair, 0));
        fk_bytes text = {0};
        json_t *quoted = NULL;
        if (tokenizer && fk_tokenizer_decode(tokenizer, &id, 1, FK_DECODE_SPECIAL, &text) == FK_OK)
            quoted = json_stringn(text.data ? text.data : "", text.bytes);
        char *shown = quoted ? json_dumps(quoted, JSON_ENCODE_ANY) : NULL;
        fkp_print(s->cli, "  %6d  %10.4f  %s\n", id, json_real_value(json_array_get(pair, 1)), shown ? shown : "");
        free(shown);
        json_decref(quoted);
        fk_bytes_deinit(&text);
    }
    if (n > 50) fkp_print(s->cli, "  ... %zu more with --json\n", n - 50);
}

/* A line for all of the answer: how sure the model was. The single ones are in the JSON. */
static void print_logprobs(session *s)
{
    size_t count = json_array_size(s->logprobs);
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += json_number_value(json_object_get(json_array_get(s->logprobs, i), "logprob"));
    fkp_print(s->cli, "\nmean log-probability of %zu tokens: %.4f (each with --json)\n", count, sum / (double)count);
}

/* ---- the prompt */

static fk_status read_prompt(session *s)
{
    const run_options *o = s->o;
    if ((o->prompt != NULL) + (o->prompt_ids != NULL) + (o->file != NULL) > 1)
        return fk_fail(FK_ERROR_INVALID, "give one of --prompt, --prompt-ids, --file");
    if (o->raw && o->system) return fk_fail(FK_ERROR_INVALID, "--raw has no place for --system '%s'", o->system);
    if (o->prompt_ids) return fkp_parse_ids("--prompt-ids", o->prompt_ids, &s->prompt);
    if (!o->prompt && !o->file && isatty(STDIN_FILENO))
        return fk_fail(FK_ERROR_INVALID, "no prompt: give --prompt, --prompt-ids, --file, or text on stdin");
    fk_bytes text = {0};
    fk_status status = o->prompt ? fk_bytes_append(&text, o->prompt, strlen(o->prompt)) : fkp_read_input(o->file ? o->file : "-", &text);
    fk_prompt prompt = {.text = {text.data, text.bytes}, .raw = o->raw};
    if (o->system) prompt.system = fk_piece_of(o->system);
    if (status == FK_OK && text.bytes == 0) status = fk_fail(FK_ERROR_INVALID, "the prompt is empty");
    if (status == FK_OK) status = fk_prompt_encode(s->model, &prompt, &s->prompt);
    fk_bytes_deinit(&text);
    return status;
}

/* ---- running */

static fk_status create_engine(session *s)
{
    int64_t context = fk_model_get_info(s->model)->max_position_embeddings, length = s->prompt.count + s->o->max_tokens;
    if (s->prompt.count >= context)
        return fk_fail(FK_ERROR_INVALID, "the prompt has %lld tokens; the context of %s holds %lld, answer included",
                       (long long)s->prompt.count, fk_model_name(s->model), (long long)context);
    if (s->o->max_tokens == 0 || length > context) length = context;
    FK_TRY(fk_engine_create(s->model,
                            &(fk_engine_options){.threads = (int)s->cli->common.threads,
                                                 .references_only = s->o->references_only,
                                                 .max_num_seqs = 1,
                                                 .max_model_len = length},
                            &s->engine));
    if (s->o->candidates) {
        FK_TRY(fkp_candidate_set_open(s->o->candidates, (fk_device_type)fk_model_device(s->model).type, s->cli->common.cache, fkp_interrupted,
                                      &s->candidates));
        FK_TRY(fkp_candidate_set_install(&s->candidates, NULL, fk_engine_ctx(s->engine)));
    }
    return s->o->trace ? fk_trace_create(fk_engine_ctx(s->engine), &s->trace) : FK_OK;
}

static fk_status create_text(session *s)
{
    const run_options *o = s->o;
    fk_piece stops[FK_MAX_STOP_STRINGS + 1];
    if (o->stop.count > FK_MAX_STOP_STRINGS)
        return fk_fail(FK_ERROR_INVALID, "%d --stop texts; %d at most", o->stop.count, FK_MAX_STOP_STRINGS);
    for (int i = 0; i < o->stop.count; i++) stops[i] = fk_piece_of(o->stop.items[i]);
    FK_TRY(fk_stop_matcher_create(stops, (size_t)o->stop.count, &s->stops));
    const fk_tokenizer *tokenizer = fk_model_tokenizer(s->model);
    if (!tokenizer && o->stop.count > 0)
        return fk_fail(FK_ERROR_INVALID, "model %s has no tokenizer: --stop '%s' cannot be found", fk_model_name(s->model), o->stop.items[0]);
    if (tokenizer) FK_TRY(fk_detokenizer_create(tokenizer, 0, &s->detokenizer));
    if (!o->output) return FK_OK;
    s->output = fopen(o->output, "w");
    return s->output ? FK_OK : fk_fail(FK_ERROR_IO, "cannot write %s: %s", o->output, strerror(errno));
}

static fk_status take_step(session *s, int64_t number)
{
    fk_step step;
    bool stopped = false;
    if (s->trace) fk_trace_begin(s->trace, s->answer.count == 0 ? "prefill" : "decode");
    fk_status status = fk_engine_step(s->engine, &step);
    if (s->trace) fk_trace_end(s->trace);
    FK_TRY(status);
    if (s->answer.count == 0) s->prefill_s += step.seconds;
    else s->decode_s += step.seconds;
    if (step.num_tokens == 0) return FK_OK; /* a chunk of a long prompt */
    if (s->answer.count == 0 && s->o->logits > 0) {
        FK_TRY(rank_logits(s, step.logits, s->o->logits, 0, &s->top_logits));
        fk_engine_keep_logits(s->engine, s->o->logprobs.given);
    }
    const fk_step_token *token = &step.tokens[0];
    if (s->o->logprobs.given) FK_TRY(note_logprobs(s, step.logits, token->id));
    FK_TRY(show_token(s, token->id, token->finish != FK_RUNNING, &stopped));
    if (stopped) fk_engine_cancel(s->engine, number);
    if (token->finish != FK_RUNNING || stopped) s->finish = token->finish == FK_FINISH_LENGTH && !stopped ? "length" : "stop";
    return FK_OK;
}

static fk_status generate(session *s)
{
    const run_options *o = s->o;
    int64_t number;
    fk_sampling sampling;
    FK_TRY(fk_generation_sampling(fk_model_config(s->model), &sampling));
    if (o->temperature.given) sampling.temperature = (float)o->temperature.value;
    if (o->top_p.given) sampling.top_p = (float)o->top_p.value;
    if (o->min_p.given) sampling.min_p = (float)o->min_p.value;
    if (o->repetition.given) sampling.repetition_penalty = (float)o->repetition.value;
    if (o->presence.given) sampling.presence_penalty = (float)o->presence.value;
    if (o->frequency.given) sampling.frequency_penalty = (float)o->frequency.value;
    if (o->top_k.given) sampling.top_k = (int32_t)o->top_k.value;
    sampling.seed = s->cli->common.seed < 0 ? 0 : s->cli->common.seed;
    sampling.max_tokens = o->max_tokens;
    sampling.ignore_eos = o->ignore_eos;
    fk_engine_keep_logits(s->engine, o->logits > 0 || o->logprobs.given);
    FK_TRY(fk_engine_add(s->engine, s->prompt.ids, s->prompt.count, &sampling, &number));
    while (!fk_engine_idle(s->engine)) {
        FK_TRY(fkp_interrupt_check());
        FK_TRY(take_step(s, number));
    }
    return FK_OK;
}

/* ---- what is told at the end */

static double decode_rate(const session *s)
{
    return s->decode_s > 0 ? (double)(s->answer.count - 1) / s->decode_s : 0;
}

static json_t *reached_json(session *s)
{
    json_t *reached = json_object();
    for (int i = 0; i < s->candidates.count; i++) {
        int64_t calls, total;
        fk_door_counts(fk_engine_ctx(s->engine), s->candidates.ops[i], &calls, &total);
        json_object_set_new(reached, s->candidates.ops[i]->name, json_integer(calls));
        if (calls == 0) fkp_warn(s->cli, "no call reached candidate %s", s->candidates.ops[i]->name);
    }
    return reached;
}

static void report(session *s)
{
    json_t *result = fkp_result(s->cli, "run");
    json_object_set_new(result, "model", fkp_json_text(fk_model_name(s->model)));
    json_object_set_new(result, "dtype", json_string(fk_dtype_name(fk_model_dtype(s->model))));
    json_object_set_new(result, "text", s->detokenizer ? json_stringn(s->text.data ? s->text.data : "", s->text.bytes) : json_null());
    json_object_set_new(result, "ids", fkp_ids_json(&s->answer));
    json_object_set_new(result, "prompt_ids", fkp_ids_json(&s->prompt));
    json_object_set_new(result, "finish_reason", fkp_json_text(s->finish));
    json_object_set_new(result, "timings",
                        json_pack("{s:o, s:o, s:o}", "load_ms", fkp_json_real(1e3 * fk_model_load_seconds(s->model)), "prefill_ms",
                                  fkp_json_real(1e3 * s->prefill_s), "decode_tok_s", fkp_json_real(decode_rate(s))));
    if (s->top_logits) json_object_set(result, "top_logits", s->top_logits);
    if (s->logprobs) json_object_set(result, "logprobs", s->logprobs);
    if (s->o->candidates) json_object_set_new(result, "reached", reached_json(s));
    fkp_emit(s->cli, result);
    if (s->top_logits) print_logits(s);
    if (s->logprobs) print_logprobs(s);
    fkp_info(s->cli, "%s, %s: loaded in %.2f s; prompt of %lld tokens in %.1f ms (%.1f tok/s); %lld tokens at %.1f tok/s; ended by %s",
             fk_model_name(s->model), fk_dtype_name(fk_model_dtype(s->model)), fk_model_load_seconds(s->model),
             (long long)s->prompt.count, 1e3 * s->prefill_s, (double)s->prompt.count / s->prefill_s, (long long)s->answer.count,
             decode_rate(s), s->finish);
}

static fk_status write_trace(session *s)
{
    int64_t left_out, slices = fk_trace_slices(s->trace, &left_out);
    FK_TRY(fk_trace_write(s->trace, s->o->trace));
    fkp_info(s->cli, "%lld calls in %s; open it in ui.perfetto.dev", (long long)slices, s->o->trace);
    if (left_out) fkp_warn(s->cli, "the trace is full: %lld later calls are not in it", (long long)left_out);
    return FK_OK;
}

static fk_status run_session(session *s)
{
    fk_model_options model = {.seed = s->cli->common.seed < 0 ? 0 : (uint64_t)s->cli->common.seed, .cache_dir = s->cli->common.cache};
    FK_TRY(fkp_cli_device(s->cli, &model.device));
    FK_TRY(fkp_parse_dtype(s->o->dtype, &model.dtype));
    if (!s->o->model) return fk_fail(FK_ERROR_INVALID, "which model? --model M, for example --model smollm2-135m");
    FK_TRY(fk_model_open(s->o->model, &model, &s->model));
    if (fk_model_is_encoder(s->model))
        return fk_fail(FK_ERROR_INVALID, "model %s is an encoder: it gives vectors, not text; ask with --embed or --search FILE", s->o->model);
    FK_TRY(read_prompt(s));
    FK_TRY(create_engine(s));
    FK_TRY(create_text(s));
    fk_status status = generate(s);
    if (s->text.bytes > 0) fkp_print(s->cli, "\n");
    fkp_flush(s->cli); /* before what goes to stderr: both may be one file */
    FK_TRY(status);
    if (s->trace) FK_TRY(write_trace(s));
    report(s);
    return FK_OK;
}

/* Options that say how an answer is made have no place where there is none. */
static fk_status check_no_answer(const run_options *o)
{
    const char *what = o->embed ? "--embed" : "--search", *given = NULL;
    if (o->raw) given = "--raw";
    if (o->system) given = "--system";
    if (o->stop.count > 0) given = "--stop";
    if (o->ignore_eos) given = "--ignore-eos";
    if (o->logits > 0) given = "--logits";
    if (o->logprobs.given) given = "--logprobs";
    if (o->temperature.given) given = "--temperature";
    if (o->top_p.given) given = "--top-p";
    if (o->min_p.given) given = "--min-p";
    if (o->repetition.given) given = "--repetition-penalty";
    if (o->presence.given) given = "--presence-penalty";
    if (o->frequency.given) given = "--frequency-penalty";
    if (o->top_k.given) given = "--top-k";
    if (o->output) given = "--output";
    if (given) return fk_fail(FK_ERROR_INVALID, "%s has no place with %s: an encoder gives vectors, not text", given, what);
    if (o->embed && o->search) return fk_fail(FK_ERROR_INVALID, "give --embed or --search '%s', not both", o->search);
    return FK_OK;
}

static int run_encoder(fkp_cli *cli, const run_options *o)
{
    fk_status status = check_no_answer(o);
    if (status != FK_OK) return fkp_exit(cli, status);
    return fkp_run_embed(cli, &(fkp_embed_options){.model = o->model, .dtype = o->dtype, .prompt = o->prompt, .prompt_ids = o->prompt_ids,
                                                   .file = o->file, .search = o->search, .trace = o->trace, .candidates = o->candidates,
                                                   .references_only = o->references_only, .best = o->best});
}

static int run(fkp_cli *cli, const void *values)
{
    session s = {.cli = cli, .o = values};
    if (s.o->embed || s.o->search) return run_encoder(cli, s.o);
    fk_status status = run_session(&s);
    if (s.output && fclose(s.output) != 0 && status == FK_OK)
        status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", s.o->output, strerror(errno));
    int code = fkp_exit(cli, status);
    json_decref(s.top_logits);
    json_decref(s.logprobs);
    fk_detokenizer_destroy(s.detokenizer);
    fk_stop_matcher_destroy(s.stops);
    fk_bytes_deinit(&s.text);
    fk_bytes_deinit(&s.fresh);
    fk_bytes_deinit(&s.cut);
    fk_token_list_deinit(&s.prompt);
    fk_token_list_deinit(&s.answer);
    fk_trace_destroy(s.trace);
    fk_engine_destroy(s.engine);
    fkp_candidate_set_close(&s.candidates);
    fk_model_close(s.model);
    return code;
}

static bool runs_candidates(const void *values)
{
    return ((const run_options *)values)->candidates != NULL;
}

const fkp_command fkp_command_run = {
    .name = "run",
    .summary = "one model, one prompt, the answer as it comes",
    .options = options,
    .options_size = sizeof(run_options),
    .details = "The answer goes to stdout as it is made, timings go to stderr. A model with seeded weights (llama:tiny, llama:8b) has\n"
               "no tokenizer: give it --prompt-ids.",
    .examples = {"fastkernels run --model smollm2-135m --prompt 'Why is the sky blue?'",
                 "fastkernels run --model minilm-l6 --search README.md --prompt 'how is a kernel judged?'"},
    .max_args = 0,
    .runs_candidates = runs_candidates,
    .run = run};
