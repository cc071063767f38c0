/* SPDX-License-Identifier: Apache-2.0 */
/* `report`: one self-contained HTML page from result files. */
#include "bench/report.h"

#include "cli/output.h"

typedef struct report_options {
    const char *output;
    bool diff;
} report_options;

static const fkp_option options[] = {
    {"output", FKP_OPT_STRING, offsetof(report_options, output), "FILE", "the page", "report.html", .letter = 'o'},
    {"diff", FKP_OPT_FLAG, offsetof(report_options, diff), NULL, "set two result files against each other: report --diff A B", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

static fk_status write_one(fkp_cli *cli, const char *path, int *cases, int *evals)
{
    fk_report *report;
    FK_TRY(fk_report_create(&report));
    fk_status status = FK_OK;
    for (int i = 0; i < cli->num_args && status == FK_OK; i++) status = fk_report_add(report, cli->args[i]);
    if (status == FK_OK) status = fk_report_write_html(report, path);
    *cases = fk_report_cases(report);
    *evals = fk_report_evals(report);
    fk_report_destroy(report);
    return status;
}

static fk_status write_diff(fkp_cli *cli, const char *path, int *cases, int *evals)
{
    fk_report *before, *after = NULL;
    FK_TRY(fk_report_create(&before));
    fk_status status = fk_report_create(&after);
    if (status == FK_OK) status = fk_report_add(before, cli->args[0]);
    if (status == FK_OK) status = fk_report_add(after, cli->args[1]);
    if (status == FK_OK) status = fk_report_write_diff(before, after, path);
    *cases = status == FK_OK ? fk_report_cases(before) + fk_report_cases(after) : 0;
    *evals = status == FK_OK ? fk_report_evals(before) + fk_report_evals(after) : 0;
    fk_report_destroy(before);
    fk_report_destroy(after);
    return status;
}

static int run(fkp_cli *cli, const void *values)
{
    const report_options *o = values;
    int cases = 0, evals = 0;
    if (cli->num_args == 0) return fkp_exit(cli, fk_fail(FK_ERROR_INVALID, "no result file given; usage: fastkernels report RESULT..."));
    if (o->diff && cli->num_args != 2)
        return fkp_exit(cli, fk_fail(FK_ERROR_INVALID, "--diff compares two result files, but %d are given", cli->num_args));
    fk_status status = o->diff ? write_diff(cli, o->output, &cases, &evals) : write_one(cli, o->output, &cases, &evals);
    if (status != FK_OK) return fkp_exit(cli, status);
    fkp_print(cli, "%s: %d case%s, %d whole model%s\n", o->output, cases, cases == 1 ? "" : "s", evals, evals == 1 ? "" : "s");
    json_t *result = fkp_result(cli, "report");
    json_object_set_new(result, "written", fkp_json_text(o->output));
    json_object_set_new(result, "cases", json_integer(cases));
    json_object_set_new(result, "evals", json_integer(evals));
    fkp_emit(cli, result);
    return FKP_EXIT_OK;
}

const fkp_command fkp_command_report = {
    .name = "report",
    .summary = "one self-contained HTML page from the results of bench and eval",
    .usage = "RESULT...",
    .options = options,
    .options_size = sizeof(report_options),
    .details = "A RESULT is what bench writes by itself (results/<device>/) or bench and eval write with --json=FILE.",
    .examples = {"fastkernels report bench.json eval.json -o report.html", "fastkernels report --diff monday.json tuesday.json"},
    .max_args = -1,
    .run = run};
