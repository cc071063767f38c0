/* SPDX-License-Identifier: Apache-2.0 */
/* `list scenarios|candidates`: what lies in the scenarios folder of the tree and in a candidates folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scenario.h"
#include "cli/list.h"
#include "cli/table.h"

static int is_yaml(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static int is_candidate(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot != entry->d_name && (strcmp(dot, ".c") == 0 || strcmp(dot, ".cu") == 0 || strcmp(dot, ".so") == 0);
}

/* One row; a file that is no scenario shows why. */
static void add_scenario(const char *name, const char *folder, fkp_table *table, json_t *scenarios)
{
    fkp_scenario *scenario;
    json_t *json = json_object();
    bool good = fkp_scenario_open(name, folder, &scenario) == FK_OK;
    fkp_table_cell(table, good ? FKP_BOLD : FKP_RED, "%s", name);
    fkp_table_cell(table, FKP_PLAIN, "%s", good ? scenario->model : "");
    fkp_table_cell(table, FKP_DIM, "%s", !good ? fk_error_message() : scenario->description ? scenario->description : "");
    json_object_set_new(json, "name", fkp_json_text(name));
    json_object_set_new(json, "model", good ? fkp_json_text(scenario->model) : json_null());
    json_object_set_new(json, "description", good ? fkp_json_text(scenario->description) : json_null());
    json_object_set_new(json, "error", good ? json_null() : fkp_json_text(fk_error_message()));
    json_array_append_new(scenarios, json);
    if (good) fkp_scenario_close(scenario);
}

int fkp_list_scenarios(fkp_cli *cli, const fkp_list_options *options)
{
    static const char *const heads[] = {"SCENARIO", "MODEL", "DESCRIPTION", NULL};
    char folder[FKP_PATH_SIZE];
    struct dirent **files = NULL;
    int model_row;
    fk_status status = fkp_scenarios_folder(folder);
    if (status == FK_OK) status = fkp_list_model_row(options, &model_row); /* an unknown scenario is an error */
    if (status != FK_OK) return fkp_exit(cli, status);
    int count = scandir(folder, &files, is_yaml, alphasort);
    if (count < 0) return fkp_exit(cli, fk_fail(FK_ERROR_MISSING, "cannot read the scenarios folder %s: %s", folder, strerror(errno)));
    json_t *result = fkp_result(cli, "list"), *scenarios = json_array();
    fkp_table table;
    fkp_table_init(&table, heads);
    for (int i = 0; i < count; i++) {
        char *name = files[i]->d_name;
        name[strlen(name) - strlen(".yaml")] = 0;
        if (!options->scenario || strcmp(options->scenario, name) == 0) add_scenario(name, folder, &table, scenarios);
        free(files[i]);
    }
    free(files);
    fkp_table_finish(cli, &table);
    json_object_set_new(result, "scenarios", scenarios);
    fkp_emit(cli, result);
    return FKP_EXIT_OK;
}

int fkp_list_candidates(fkp_cli *cli, const fkp_list_options *options)
{
    static const char *const heads[] = {"OPERATOR", "KIND", "LEVEL", "NOTE", NULL};
    struct dirent **files = NULL;
    int count = scandir(options->candidates, &files, is_candidate, alphasort);
    if (count < 0)
        return fkp_exit(cli, fk_fail(FK_ERROR_INVALID, "cannot read the candidates folder '%s': %s (name it with --candidates DIR)",
                                     options->candidates, strerror(errno)));
    json_t *result = fkp_result(cli, "list"), *candidates = json_array();
    fkp_table table;
    fkp_table_init(&table, heads);
    for (int i = 0; i < count; i++) {
        char op_name[256];
        const char *dot = strrchr(files[i]->d_name, '.');
        snprintf(op_name, sizeof op_name, "%.*s", (int)(dot - files[i]->d_name), files[i]->d_name);
        const fk_op *op = fk_op_find(op_name);
        fkp_table_cell(&table, op ? FKP_BOLD : FKP_RED, "%s", op_name);
        fkp_table_cell(&table, FKP_PLAIN, "%s", dot + 1);
        if (op) fkp_table_cell(&table, FKP_PLAIN, "L%d", op->level);
        else fkp_table_cell(&table, FKP_PLAIN, "%s", "");
        fkp_table_cell(&table, FKP_DIM, "%s", op ? "" : "no such operator: will not be used");
        json_t *json = json_object();
        json_object_set_new(json, "op", fkp_json_text(op_name));
        json_object_set_new(json, "file", json_sprintf("%s", files[i]->d_name));
        json_object_set_new(json, "kind", json_string(dot + 1));
        json_object_set_new(json, "known", json_boolean(op != NULL));
        json_array_append_new(candidates, json);
        free(files[i]);
    }
    free(files);
    fkp_table_finish(cli, &table);
    json_object_set_new(result, "candidates", candidates);
    fkp_emit(cli, result);
    return FKP_EXIT_OK;
}
