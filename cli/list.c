/* SPDX-License-Identifier: Apache-2.0 */
/* `list`: what there is, from the registry and the compiled-in tables. */
#include "cli/list.h"

#include <string.h>

#include "bench/scenario.h"
#include "core/nearest.h"
#include "runtime/assets.h"
#include "runtime/config.h"

#define AT(field) offsetof(fkp_list_options, field)
static const fkp_option options[] = {
    {"level", FKP_OPT_STRING, AT(level), "L1..L4", "operators of this level only (several: L1,L2)", .max = 0},
    {"model", FKP_OPT_STRING, AT(model), "M", "what this architecture uses", .max = 0},
    {"family", FKP_OPT_STRING, AT(family), "F", "this family only: of models (llm, vision, ...) or of operators (norm, attention, ...)", .max = 0},
    {"scenario", FKP_OPT_STRING, AT(scenario), "S", "what this scenario runs (list scenarios)", .max = 0},
    {"candidates", FKP_OPT_STRING, AT(candidates), "DIR", "folder that `list candidates` looks at", "candidates", .max = 0},
    {"map", FKP_OPT_FLAG, AT(map), NULL, "operators against architectures", .max = 0},
    {"planned", FKP_OPT_FLAG, AT(planned), NULL, "also operators that are not built yet (no implementations)", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

/* Stops at the first of the kinds that `word` names. */
static const struct {
    const char *name;
    int (*run)(fkp_cli *cli, const fkp_list_options *options);
} kinds[] = {{"operators", fkp_list_operators}, {"models", fkp_list_models},       {"families", fkp_list_families},
             {"workloads", fkp_list_workloads}, {"scenarios", fkp_list_scenarios}, {"candidates", fkp_list_candidates}};

/* The architecture of a named configuration "<architecture>:<size>" with that size: assets are named like theirs. */
static const char *architecture_of_size(const char *size)
{
    for (int i = 0; fk_config_name_at(i); i++) {
        const char *name = fk_config_name_at(i), *colon = strchr(name, ':');
        if (colon && strcmp(colon + 1, size) == 0) return name;
    }
    return NULL;
}

fk_status fkp_find_architecture(const char *name, int *row)
{
    const fkp_tsv *table = fkp_architectures();
    const char *configured = strchr(name, ':') ? name : architecture_of_size(name);
    char base[128];
    snprintf(base, sizeof base, "%.*s", (int)strcspn(configured ? configured : name, ":"), configured ? configured : name);
    *row = fkp_tsv_find(table, "architecture", base);
    if (*row >= 0) return FK_OK;
    fkp_nearest nearest = {.word = name};
    for (int i = 0; i < table->count; i++) fkp_nearest_offer(&nearest, fkp_tsv_cell(table, i, "architecture"));
    for (int i = 0; fk_asset_name_at(i); i++) fkp_nearest_offer(&nearest, fk_asset_name_at(i));
    return fkp_fail_unknown("model", &nearest, "'fastkernels list models' shows them");
}

fk_status fkp_scenarios_folder(char path[FKP_PATH_SIZE])
{
    return fkp_home_path("scenarios", path);
}

fk_status fkp_list_model_row(const fkp_list_options *options, int *row)
{
    *row = -1;
    if (options->model) FK_TRY(fkp_find_architecture(options->model, row));
    if (!options->scenario) return FK_OK;
    char folder[FKP_PATH_SIZE];
    fkp_scenario *scenario;
    int own;
    FK_TRY(fkp_scenarios_folder(folder));
    FK_TRY(fkp_scenario_open(options->scenario, folder, &scenario));
    fk_status status = fkp_find_architecture(scenario->model, &own);
    if (status == FK_OK && *row >= 0 && own != *row)
        status = fk_fail(FK_ERROR_INVALID, "scenario %s runs %s, not %s", options->scenario, scenario->model, options->model);
    fkp_scenario_close(scenario);
    *row = own;
    return status;
}

/* "norm" of "norm/rms_norm.def". */
static size_t family_length(const fk_op *op)
{
    return strcspn(op->family, "/");
}

static fk_status check_operator_family(const char *family)
{
    char names[64][64];
    int count = 0;
    fkp_nearest nearest = {.word = family};
    for (int i = 0; i < fk_op_count() && count < 64; i++) {
        const fk_op *op = fk_op_at(i);
        snprintf(names[count], sizeof names[count], "%.*s", (int)family_length(op), op->family);
        if (strcmp(names[count], family) == 0) return FK_OK;
        fkp_nearest_offer(&nearest, names[count]);
        if (nearest.best == names[count]) count++; /* kept as long as it may be named */
    }
    return fkp_fail_unknown("family of operators", &nearest, "'fastkernels list operators' shows them");
}

fk_status fkp_check_family(const char *family, bool of_operators)
{
    if (of_operators) return check_operator_family(family);
    const fkp_tsv *table = fkp_architectures();
    fkp_nearest nearest = {.word = family};
    for (int i = 0; i < table->count; i++) {
        if (strcmp(fkp_tsv_cell(table, i, "family"), family) == 0) return FK_OK;
        fkp_nearest_offer(&nearest, fkp_tsv_cell(table, i, "family"));
    }
    return fkp_fail_unknown("family of models", &nearest, "'fastkernels list families' shows them");
}

static int run(fkp_cli *cli, const void *values)
{
    const fkp_list_options *o = values;
    const char *word = cli->num_args > 0 ? cli->args[0] : "operators";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, word) == 0) return kinds[i].run(cli, o);
    fkp_nearest nearest = {.word = word};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) fkp_nearest_offer(&nearest, kinds[i].name);
    return fkp_exit(cli, fkp_fail_unknown("kind of list", &nearest, "operators, models, families, workloads, scenarios, candidates"));
}

const fkp_command fkp_command_list = {
    .name = "list",
    .summary = "what there is: operators, models, families, workloads, scenarios, candidates",
    .usage = "[operators|models|families|workloads|scenarios|candidates]",
    .options = options,
    .options_size = sizeof(fkp_list_options),
    .details = "Without a word it lists the operators. A model's stage is a row of letters: R its reference equals the golden,\n"
               "G its CUDA baselines are verified on a GPU, B it can be benched, E eval runs it, P it is ahead of the peer.",
    .examples = {"fastkernels list operators --level L1 --model llama", "fastkernels list models --family vision --json"},
    .max_args = 1,
    .run = run};
