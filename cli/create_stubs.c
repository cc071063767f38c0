/* SPDX-License-Identifier: Apache-2.0 */
/* `create-stubs`: candidate files to start from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/stubs.h"
#include "cli/output.h"
#include "core/nearest.h"

typedef struct stub_options {
    const char *level, *from, *lang, *output;
} stub_options;

#define AT(field) offsetof(stub_options, field)
static const fkp_option options[] = {
    {"level", FKP_OPT_STRING, AT(level), "L1..L3", "operators of this level (several: L1,L2)", .max = 0},
    {"from", FKP_OPT_STRING, AT(from), "DIR", "a capture: its operators, with its cases as comments", .max = 0},
    {"lang", FKP_OPT_STRING, AT(lang), "c|cuda", "language", "c", .max = 0},
    {"output", FKP_OPT_STRING, AT(output), "DIR", "folder of the files", "candidates", .letter = 'o'},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

static fk_status choose(const fkp_cli *cli, const stub_options *o, fkp_case_list *cases, bool *wanted)
{
    unsigned levels;
    FK_TRY(fkp_parse_levels(o->level, &levels));
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
        if (!cli->num_args && !o->from) wanted[i] = true;
        wanted[i] = wanted[i] && (levels >> fk_op_at(i)->level & 1);
    }
    return FK_OK;
}

static fk_status write_all(fkp_cli *cli, const stub_options *o, const fkp_case_list *cases, const bool *wanted, int *num_written)
{
    bool cuda = strcmp(o->lang, "cuda") == 0;
    if (!cuda && strcmp(o->lang, "c") != 0) return fk_fail(FK_ERROR_INVALID, "--lang '%s' is neither c nor cuda", o->lang);
    if (mkdir(o->output, 0777) != 0 && errno != EEXIST) return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", o->output, strerror(errno));
    json_t *result = fkp_result(cli, "create-stubs"), *written = json_array(), *skipped = json_array();
    fk_status status = FK_OK;
    for (int i = 0; i < fk_op_count() && status == FK_OK; i++) {
        char path[1200];
        if (!wanted[i]) continue;
        status = fkp_stub_write(fk_op_at(i), cuda, o->output, cases, path);
        if (status == FK_OK) {
            json_array_append_new(written, fkp_json_text(path));
            fkp_print(cli, "%s\n", path);
            (*num_written)++;
        } else if (status == FK_ERROR_UNSUPPORTED || status == FK_ERROR_INVALID) {
            json_t *one = json_object();
            json_object_set_new(one, "op", json_string(fk_op_at(i)->name));
            json_object_set_new(one, "why", fkp_json_text(fk_error_message()));
            json_array_append_new(skipped, one);
            fkp_info(cli, "%s: skipped: %s", fk_op_at(i)->name, fk_error_message());
            status = FK_OK;
        }
    }
    json_object_set_new(result, "written", written);
    json_object_set_new(result, "skipped", skipped);
    fkp_emit(cli, result);
    return status;
}

static int run(fkp_cli *cli, const void *values)
{
    const stub_options *o = values;
    fkp_case_list cases = {0};
    int num_written = 0;
    bool *wanted = calloc((size_t)fk_op_count(), sizeof *wanted);
    fk_status status = wanted ? choose(cli, o, &cases, wanted) : fk_fail(FK_ERROR_MEMORY, "out of memory");
    if (status == FK_OK) status = write_all(cli, o, &cases, wanted, &num_written);
    if (status == FK_OK && num_written == 0) fkp_info(cli, "nothing was written");
    fkp_case_list_deinit(&cases);
    free(wanted);
    return fkp_exit(cli, status);
}

const fkp_command fkp_command_create_stubs = {
    .name = "create-stubs",
    .summary = "candidate files to start from: signature, cases, a correct and slow body",
    .usage = "[OP...]",
    .options = options,
    .options_size = sizeof(stub_options),
    .details = "Without a name: every operator of --level, or of --from. A file that exists is never overwritten.",
    .examples = {"fastkernels create-stubs rms_norm silu_and_mul -o candidates", "fastkernels create-stubs --from captures/demo --level L1 --lang cuda"},
    .max_args = -1,
    .run = run};
