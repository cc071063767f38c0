/* SPDX-License-Identifier: Apache-2.0 */
/* `create-stubs`: candidate files to start from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/stubs.h"
#include "cli/list.h"
#include "cli/output.h"
#include "core/nearest.h"

typedef struct stub_options {
    const char *model, *level, *from, *lang, *output, *task_dir;
} stub_options;

#define AT(field) offsetof(stub_options, field)
static const fkp_option options[] = {
    {"model", FKP_OPT_STRING, AT(model), "M", "operators that this model uses", .max = 0},
    {"level", FKP_OPT_STRING, AT(level), "L1..L3", "operators of this level (several: L1,L2)", .max = 0},
    {"from", FKP_OPT_STRING, AT(from), "DIR", "a capture: its operators, with its cases as comments", .max = 0},
    {"lang", FKP_OPT_STRING, AT(lang), "c|cuda", "language", "c", .max = 0},
    {"output", FKP_OPT_STRING, AT(output), "DIR", "folder of the files (candidates)", NULL, .letter = 'o'},
    {"task-dir", FKP_OPT_STRING, AT(task_dir), "DIR", "instead: DIR/OP with TASK.md, the stub and its headers", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

/* What an option leaves out; `why` says so of operators that were named. */
static bool is_left_out(const fk_op *op, unsigned levels, const char *architecture, char why[160])
{
    if (!(levels >> op->level & 1)) snprintf(why, 160, "it is L%d", op->level);
    else if (architecture && !fkp_list_has(fkp_operator_users(op), architecture)) snprintf(why, 160, "%s does not use it", architecture);
    else return false;
    return true;
}

static void add_skipped(const fkp_cli *cli, json_t *skipped, const fk_op *op, const char *why)
{
    json_array_append_new(skipped, json_pack("{s:s, s:o}", "op", op->name, "why", fkp_json_text(why)));
    fkp_info(cli, "%s: skipped: %s", op->name, why);
}

static fk_status choose(const fkp_cli *cli, const stub_options *o, fkp_case_list *cases, bool *wanted, json_t *skipped)
{
    unsigned levels;
    int row = -1;
    FK_TRY(fkp_parse_levels(o->level, &levels));
    if (o->model) FK_TRY(fkp_find_architecture(o->model, &row));
    const char *architecture = row >= 0 ? fkp_tsv_cell(fkp_architectures(), row, "architecture") : NULL;
    for (int i = 0; i < cli->num_args; i++) {
        const fk_op *op = fk_op_find(cli->args[i]);
        if (op) {
            wanted[op->index] = true;
            continue;
        }
        fkp_nearest nearest = {.word = cli->args[i]};
        for (int k = 0; k < fk_op_count(); k++) fkp_nearest_offer(&nearest, fk_op_at(k)->name);
        return fkp_fail_unknown("operator", &nearest, "'fastkernels list operators' shows them");
    }
    if (o->from) {
        FK_TRY(fkp_cases_captured(cases, o->from, NULL));
        fkp_cases_sort(cases);
    }
    for (int i = 0; i < cases->count && !cli->num_args; i++) wanted[cases->items[i].op->index] = true;
    for (int i = 0; i < fk_op_count(); i++) {
        char why[160];
        if (!cli->num_args && !o->from) wanted[i] = true;
        if (!wanted[i] || !is_left_out(fk_op_at(i), levels, architecture, why)) continue;
        wanted[i] = false;
        if (cli->num_args) add_skipped(cli, skipped, fk_op_at(i), why);
    }
    return FK_OK;
}

static fk_status write_all(fkp_cli *cli, const stub_options *o, const fkp_case_list *cases, const bool *wanted, json_t *result,
                           json_t *skipped)
{
    bool cuda = strcmp(o->lang, "cuda") == 0;
    const char *folder = o->task_dir ? o->task_dir : o->output ? o->output : "candidates";
    json_t *written = json_array(), *incomplete = json_array();
    json_object_set_new(result, "written", written);
    json_object_set_new(result, "incomplete", incomplete);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", folder, strerror(errno));
    for (int i = 0; i < fk_op_count(); i++) {
        fkp_stub stub;
        if (!wanted[i]) continue;
        const fk_op *op = fk_op_at(i);
        fk_status status = (o->task_dir ? fkp_stub_write_task : fkp_stub_write)(op, cuda, folder, cases, &stub);
        if (status == FK_ERROR_INVALID) {
            add_skipped(cli, skipped, op, fk_error_message());
            continue;
        }
        FK_TRY(status);
        json_array_append_new(written, fkp_json_text(stub.path));
        if (!stub.complete) json_array_append_new(incomplete, json_string(op->name));
        fkp_print(cli, "%s%s\n", stub.path, stub.complete ? "" : "  (its body is to be filled in)");
    }
    if (json_array_size(written) == 0) fkp_info(cli, "nothing was written");
    return FK_OK;
}

static fk_status check_options(const stub_options *o)
{
    if (strcmp(o->lang, "cuda") != 0 && strcmp(o->lang, "c") != 0) return fk_fail(FK_ERROR_INVALID, "--lang '%s' is neither c nor cuda", o->lang);
    if (o->output && o->task_dir) return fk_fail(FK_ERROR_INVALID, "--output '%s' and --task-dir '%s' exclude each other", o->output, o->task_dir);
    return FK_OK;
}

static int run(fkp_cli *cli, const void *values)
{
    const stub_options *o = values;
    fkp_case_list cases = {0};
    json_t *result = fkp_result(cli, "create-stubs"), *skipped = json_array();
    bool *wanted = calloc((size_t)fk_op_count(), sizeof *wanted);
    fk_status status = wanted ? check_options(o) : fk_fail(FK_ERROR_MEMORY, "out of memory");
    if (status == FK_OK) status = choose(cli, o, &cases, wanted, skipped);
    if (status == FK_OK) status = write_all(cli, o, &cases, wanted, result, skipped);
    json_object_set_new(result, "skipped", skipped);
    if (status == FK_OK) fkp_emit(cli, result);
    else json_decref(result);
    fkp_case_list_deinit(&cases);
    free(wanted);
    return fkp_exit(cli, status);
}

const fkp_command fkp_command_create_stubs = {
    .name = "create-stubs",
    .summary = "candidate files to start from: declaration, cases, a body",
    .usage = "[OP...]",
    .options = options,
    .options_size = sizeof(stub_options),
    .details = "Without a name: every operator of --from, --model and --level, else all. Most bodies are right and slow; the others compile and\n"
               "return an error (\"incomplete\" names them). A file that exists is never overwritten.",
    .examples = {"fastkernels create-stubs rms_norm silu_and_mul -o candidates", "fastkernels create-stubs --model llama --from captures/demo --lang cuda --task-dir tasks"},
    .max_args = -1,
    .run = run};
