/* SPDX-License-Identifier: Apache-2.0 */
/* `list scenarios|candidates`: what lies in the scenarios folder of the tree and in a candidates folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/list.h"
#include "cli/paths.h"
#include "cli/table.h"

/* Value of a top-level "key: value" line of a YAML file, "" when there is none. */
static void top_level_value(const char *path, const char *key, char *buf, size_t size)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    size_t length = strlen(key);
    *buf = 0;
    if (!f) return;
    while (!*buf && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, length) != 0 || line[length] != ':') continue;
        const char *value = line + length + 1 + strspn(line + length + 1, " \t\"");
        snprintf(buf, size, "%.*s", (int)strcspn(value, "\"\n"), value);
    }
    fclose(f);
}

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

int fkp_list_scenarios(fkp_cli *cli, const fkp_list_options *options)
{
    static const char *const heads[] = {"SCENARIO", "MODEL", "DESCRIPTION", NULL};
    char folder[FKP_PATH_SIZE];
    struct dirent **files = NULL;
    fk_status status = fkp_home_path("scenarios", folder);
    if (status != FK_OK) return fkp_exit(cli, status);
    int count = scandir(folder, &files, is_yaml, alphasort);
    if (count < 0) return fkp_exit(cli, fk_fail(FK_ERROR_MISSING, "cannot read the scenarios folder %s: %s", folder, strerror(errno)));
    json_t *result = fkp_result(cli, "list"), *scenarios = json_array();
    fkp_table table;
    fkp_table_init(&table, heads);
    for (int i = 0; i < count; i++) {
        char path[2 * FKP_PATH_SIZE], model[256], description[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        top_level_value(path, "model", model, sizeof model);
        top_level_value(path, "description", description, sizeof description);
        files[i]->d_name[strlen(files[i]->d_name) - 5] = 0;
        if (!options->scenario || strcmp(options->scenario, files[i]->d_name) == 0) {
            fkp_table_cell(&table, FKP_BOLD, "%s", files[i]->d_name);
            fkp_table_cell(&table, FKP_PLAIN, "%s", model);
            fkp_table_cell(&table, FKP_DIM, "%s", description);
            json_t *json = json_object();
            json_object_set_new(json, "name", fkp_json_text(files[i]->d_name));
            json_object_set_new(json, "model", fkp_json_text(model));
            json_object_set_new(json, "description", fkp_json_text(description));
            json_array_append_new(scenarios, json);
        }
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
