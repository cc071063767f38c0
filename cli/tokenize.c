/* SPDX-License-Identifier: Apache-2.0 */
/* `tokenize` and `detokenize`: lines of text to token ids and back. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <fk/model.h>

#include "cli/interrupt.h"
#include "cli/model_input.h"
#include "cli/output.h"
#include "runtime/prompt.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

typedef struct tokenize_options {
    const char *model, *text, *file;
    bool add_special, no_special, parse_special;
} tokenize_options;

#define AT(field) offsetof(tokenize_options, field)
#define MODEL_HELP "whose tokenizer: smollm2-135m, a GGUF file, a folder, *.model, *.tiktoken"
#define SHARED_OPTIONS(text_help)                                                                            \
    {"model", FKP_OPT_STRING, AT(model), "M|PATH", MODEL_HELP, .max = 0},                                    \
        {"text", FKP_OPT_STRING, AT(text), "T", text_help, .max = 0},                                        \
        {"file", FKP_OPT_STRING, AT(file), "F", "lines of a file; - or nothing is stdin", .max = 0}

static const fkp_option tokenize_table[] = {
    SHARED_OPTIONS("this text, as one line"),
    {"add-special", FKP_OPT_FLAG, AT(add_special), NULL, "begin with the model's begin token, when it has one (default)", .max = 0},
    {"no-special", FKP_OPT_FLAG, AT(no_special), NULL, "add no begin token", .max = 0},
    {"parse-special", FKP_OPT_FLAG, AT(parse_special), NULL, "control tokens written in the text become their ids", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

static const fkp_option detokenize_table[] = {
    SHARED_OPTIONS("these ids, 1,2,3"),
    {"add-special", FKP_OPT_FLAG, AT(add_special), NULL, "show control tokens by name (default)", .max = 0},
    {"no-special", FKP_OPT_FLAG, AT(no_special), NULL, "leave control tokens out", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

typedef struct job {
    fkp_cli *cli;
    const tokenize_options *o;
    fk_tokenizer *tokenizer;
    fk_encoder *encoder;
    int64_t line; /* from 1; 0: --text */
    fk_token_list ids;
    fk_bytes text;
} job;

static fk_status tokenize_line(job *j, fk_piece line)
{
    char what[64] = "--text";
    if (j->line) snprintf(what, sizeof what, "line %lld", (long long)j->line);
    FK_TRY(fk_check_utf8(what, line));
    unsigned flags = (j->o->no_special ? 0 : FK_ENCODE_ADD_BOS) | (j->o->parse_special ? FK_ENCODE_PARSE_SPECIAL : 0);
    fk_token_list_clear(&j->ids);
    FK_TRY(fk_encoder_encode(j->encoder, line.data ? line.data : "", line.bytes, flags, &j->ids));
    int64_t dropped = fk_encoder_dropped_bytes(j->encoder);
    if (dropped) fkp_warn(j->cli, "%s: %lld bytes left out, the vocabulary has no piece for them", what, (long long)dropped);
    json_t *result = fkp_result(j->cli, "tokenize");
    json_object_set_new(result, "ids", fkp_ids_json(&j->ids));
    json_object_set_new(result, "text", json_stringn(line.data ? line.data : "", line.bytes));
    fkp_emit(j->cli, result);
    for (int64_t i = 0; i < j->ids.count; i++) fkp_print(j->cli, "%s%d", i ? " " : "", j->ids.ids[i]);
    fkp_print(j->cli, "\n");
    return FK_OK;
}

static fk_status detokenize_line(job *j, fk_piece line)
{
    char what[64] = "--text";
    if (j->line) snprintf(what, sizeof what, "line %lld", (long long)j->line);
    char *copy = strndup(line.data ? line.data : "", line.bytes);
    if (!copy) return fk_fail(FK_ERROR_MEMORY, "out of memory for a line of %zu bytes", line.bytes);
    fk_token_list_clear(&j->ids);
    fk_bytes_clear(&j->text);
    fk_status status = fkp_parse_ids(what, copy, &j->ids);
    free(copy);
    FK_TRY(status);
    status = fk_tokenizer_decode(j->tokenizer, j->ids.ids, j->ids.count, j->o->no_special ? 0 : FK_DECODE_SPECIAL, &j->text);
    if (status != FK_OK) return fk_fail_context(status, "%s", what);
    json_t *result = fkp_result(j->cli, "detokenize");
    json_object_set_new(result, "text", json_stringn(j->text.data ? j->text.data : "", j->text.bytes));
    json_object_set_new(result, "ids", fkp_ids_json(&j->ids));
    fkp_emit(j->cli, result);
    fkp_print(j->cli, "%.*s\n", (int)j->text.bytes, j->text.data ? j->text.data : "");
    return FK_OK;
}

/* --text as one line, else the lines of the input; a newline at the very end makes no further line. */
static fk_status each_line(job *j, fk_status (*line)(job *j, fk_piece text))
{
    if (j->o->text && j->o->file) return fk_fail(FK_ERROR_INVALID, "give one of --text and --file");
    if (j->o->text) return line(j, fk_piece_of(j->o->text));
    fk_bytes input = {0};
    fk_status status = fkp_read_input(j->o->file ? j->o->file : "-", &input);
    size_t at = 0;
    while (status == FK_OK && at < input.bytes) {
        const char *end = memchr(input.data + at, '\n', input.bytes - at);
        size_t bytes = end ? (size_t)(end - input.data) - at : input.bytes - at;
        j->line++;
        status = fkp_interrupt_check();
        if (status == FK_OK) status = line(j, (fk_piece){input.data + at, bytes});
        at += bytes + 1;
    }
    fk_bytes_deinit(&input);
    return status;
}

static int run(fkp_cli *cli, const void *values, fk_status (*line)(job *j, fk_piece text))
{
    job j = {.cli = cli, .o = values};
    fk_status status = FK_OK;
    if (!j.o->model) status = fk_fail(FK_ERROR_INVALID, "whose tokenizer? --model M, for example --model smollm2-135m");
    else if (j.o->add_special && j.o->no_special) status = fk_fail(FK_ERROR_INVALID, "give one of --add-special and --no-special");
    if (status == FK_OK) status = fk_model_tokenizer_open(j.o->model, cli->common.cache, &j.tokenizer);
    if (status == FK_OK) status = fk_encoder_create(j.tokenizer, &j.encoder);
    if (status == FK_OK) status = each_line(&j, line);
    int code = fkp_exit(cli, status);
    fk_encoder_destroy(j.encoder);
    fk_tokenizer_destroy(j.tokenizer);
    fk_token_list_deinit(&j.ids);
    fk_bytes_deinit(&j.text);
    return code;
}

static int run_tokenize(fkp_cli *cli, const void *values)
{
    return run(cli, values, tokenize_line);
}

static int run_detokenize(fkp_cli *cli, const void *values)
{
    return run(cli, values, detokenize_line);
}

const fkp_command fkp_command_tokenize = {
    .name = "tokenize",
    .summary = "lines of text to token ids",
    .options = tokenize_table,
    .options_size = sizeof(tokenize_options),
    .examples = {"fastkernels tokenize --model smollm2-135m --text 'The sky is blue.'",
                 "fastkernels tokenize --model smollm2-135m --file README.md --json"},
    .max_args = 0,
    .run = run_tokenize};

const fkp_command fkp_command_detokenize = {
    .name = "detokenize",
    .summary = "lines of token ids back to text",
    .options = detokenize_table,
    .options_size = sizeof(tokenize_options),
    .examples = {"fastkernels detokenize --model smollm2-135m --text '504 6376 314 4461 30'",
                 "fastkernels detokenize --model smollm2-135m --file ids.txt --no-special"},
    .max_args = 0,
    .run = run_detokenize};
