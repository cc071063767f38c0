/* SPDX-License-Identifier: Apache-2.0 */
/* `list models|families|workloads`: the architectures to reach, each with the stage it has reached. */
#include <string.h>

#include "cli/list.h"
#include "cli/table.h"
#include "runtime/assets.h"
#include "runtime/config.h"

static json_t *workloads_of(const fkp_tsv *table, int row)
{
    json_t *array = json_array();
    for (const char *p = fkp_tsv_cell(table, row, "workloads"); *p;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ",");
        if (n) json_array_append_new(array, json_stringn(p, n));
        p += n;
    }
    return array;
}

static bool wanted(const fkp_tsv *table, int row, const fkp_list_options *options, int model_row)
{
    if (options->family && strcmp(options->family, fkp_tsv_cell(table, row, "family")) != 0) return false;
    return model_row < 0 || model_row == row;
}

static fk_status check_options(const fkp_list_options *options, int *model_row)
{
    if (options->family) FK_TRY(fkp_check_family(options->family, false));
    return fkp_list_model_row(options, model_row);
}

/* Names that --model takes besides the architecture's: "llama:8b" and the like, with seeded weights. */
static json_t *configurations_of(const char *architecture)
{
    json_t *array = json_array();
    size_t length = strlen(architecture);
    for (int i = 0; fk_config_name_at(i); i++)
        if (strncmp(fk_config_name_at(i), architecture, length) == 0 && fk_config_name_at(i)[length] == ':')
            json_array_append_new(array, json_string(fk_config_name_at(i)));
    return array;
}

/* What --model takes, below the table. */
static void print_names(fkp_cli *cli)
{
    fkp_print(cli, "\nNamed configurations, with seeded weights:");
    for (int i = 0; fk_config_name_at(i); i++) fkp_print(cli, " %s", fk_config_name_at(i));
    fkp_print(cli, "\nReal weights (tools/fetch-assets):");
    for (int i = 0; fk_asset_name_at(i); i++)
        if (fk_asset_is_model(i)) fkp_print(cli, " %s", fk_asset_name_at(i));
    fkp_print(cli, "\n");
}

static json_t *describe(const fkp_tsv *t, int row)
{
    json_t *json = json_object();
    json_object_set_new(json, "name", json_string(fkp_tsv_cell(t, row, "architecture")));
    json_object_set_new(json, "title", json_string(fkp_tsv_cell(t, row, "name")));
    json_object_set_new(json, "family", json_string(fkp_tsv_cell(t, row, "family")));
    json_object_set_new(json, "model_type", *fkp_tsv_cell(t, row, "model_type") ? json_string(fkp_tsv_cell(t, row, "model_type"))
                                                                                : json_null());
    json_object_set_new(json, "checkpoint", json_string(fkp_tsv_cell(t, row, "checkpoint")));
    json_object_set_new(json, "dtype", json_string(fkp_tsv_cell(t, row, "dtype")));
    json_object_set_new(json, "tp", json_integer(fkp_tsv_cell(t, row, "tp")[0] - '0'));
    json_object_set_new(json, "workloads", workloads_of(t, row));
    json_object_set_new(json, "reference", json_string(fkp_tsv_cell(t, row, "reference_library")));
    json_object_set_new(json, "configurations", configurations_of(fkp_tsv_cell(t, row, "architecture")));
    json_object_set_new(json, "stage", json_string(fkp_tsv_cell(t, row, "stage")));
    return json;
}

int fkp_list_models(fkp_cli *cli, const fkp_list_options *options)
{
    static const char *const heads[] = {"MODEL", "STAGE", "FAMILY", "DTYPE", ">TP", "CHECKPOINT", "REFERENCE", NULL};
    const fkp_tsv *t = fkp_architectures();
    fkp_table table;
    int model_row;
    fk_status status = check_options(options, &model_row);
    if (status != FK_OK) return fkp_exit(cli, status);
    json_t *result = fkp_result(cli, "list"), *models = json_array();
    fkp_table_init(&table, heads);
    for (int row = 0; row < t->count; row++) {
        if (!wanted(t, row, options, model_row)) continue;
        const char *stage = fkp_tsv_cell(t, row, "stage");
        json_array_append_new(models, describe(t, row));
        fkp_table_cell(&table, *stage ? FKP_BOLD : FKP_DIM, "%s", fkp_tsv_cell(t, row, "architecture"));
        fkp_table_cell(&table, *stage ? FKP_GREEN : FKP_DIM, "%s", *stage ? stage : "-");
        fkp_table_cell(&table, FKP_PLAIN, "%s", fkp_tsv_cell(t, row, "family"));
        fkp_table_cell(&table, FKP_PLAIN, "%s", fkp_tsv_cell(t, row, "dtype"));
        fkp_table_cell(&table, FKP_PLAIN, "%s", fkp_tsv_cell(t, row, "tp"));
        fkp_table_cell(&table, FKP_PLAIN, "%s", fkp_tsv_cell(t, row, "checkpoint"));
        fkp_table_cell(&table, FKP_DIM, "%s", fkp_tsv_cell(t, row, "reference_library"));
    }
    fkp_table_finish(cli, &table);
    print_names(cli);
    json_object_set_new(result, "models", models);
    fkp_emit(cli, result);
    return FKP_EXIT_OK;
}

int fkp_list_families(fkp_cli *cli, const fkp_list_options *options)
{
    static const char *const heads[] = {"FAMILY", ">MODELS", ">STARTED", "NAMES", NULL};
    const fkp_tsv *t = fkp_architectures();
    fkp_table table;
    int model_row;
    fk_status status = check_options(options, &model_row);
    if (status != FK_OK) return fkp_exit(cli, status);
    json_t *result = fkp_result(cli, "list"), *families = json_array();
    fkp_table_init(&table, heads);
    for (int first = 0; first < t->count; first++) {
        const char *family = fkp_tsv_cell(t, first, "family");
        if (fkp_tsv_find(t, "family", family) != first || !wanted(t, first, options, model_row)) continue;
        json_t *names = json_array();
        char text[1024] = "";
        size_t used = 0;
        int started = 0;
        for (int row = first; row < t->count; row++) {
            if (strcmp(fkp_tsv_cell(t, row, "family"), family) != 0) continue;
            const char *name = fkp_tsv_cell(t, row, "architecture");
            started += *fkp_tsv_cell(t, row, "stage") != 0;
            if (used < sizeof text) used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", name);
            json_array_append_new(names, json_string(name));
        }
        fkp_table_cell(&table, FKP_BOLD, "%s", family);
        fkp_table_cell(&table, FKP_PLAIN, "%zu", json_array_size(names));
        fkp_table_cell(&table, FKP_PLAIN, "%d", started);
        fkp_table_cell(&table, FKP_DIM, "%s", text);
        json_t *json = json_object();
        json_object_set_new(json, "name", json_string(family));
        json_object_set_new(json, "started", json_integer(started));
        json_object_set_new(json, "models", names);
        json_array_append_new(families, json);
    }
    fkp_table_finish(cli, &table);
    json_object_set_new(result, "families", families);
    fkp_emit(cli, result);
    return FKP_EXIT_OK;
}

/* Workloads in the order of their first model; one that several models run is listed once. */
int fkp_list_workloads(fkp_cli *cli, const fkp_list_options *options)
{
    static const char *const heads[] = {"WORKLOAD", ">MODELS", "NAMES", NULL};
    const fkp_tsv *t = fkp_architectures();
    fkp_table table;
    int model_row;
    fk_status status = check_options(options, &model_row);
    if (status != FK_OK) return fkp_exit(cli, status);
    json_t *result = fkp_result(cli, "list"), *by_name = json_object(), *workloads = json_array();
    for (int row = 0; row < t->count; row++) {
        if (!wanted(t, row, options, model_row)) continue;
        json_t *names = workloads_of(t, row), *name;
        size_t i;
        json_array_foreach(names, i, name) {
            json_t *users = json_object_get(by_name, json_string_value(name));
            if (!users) json_object_set_new(by_name, json_string_value(name), users = json_array());
            json_array_append_new(users, json_string(fkp_tsv_cell(t, row, "architecture")));
        }
        json_decref(names);
    }
    fkp_table_init(&table, heads);
    const char *name;
    json_t *users;
    json_object_foreach(by_name, name, users) {
        char text[1024] = "";
        size_t i, used = 0;
        json_t *user;
        json_array_foreach(users, i, user)
            if (used < sizeof text)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", json_string_value(user));
        fkp_table_cell(&table, FKP_BOLD, "%s", name);
        fkp_table_cell(&table, FKP_PLAIN, "%zu", json_array_size(users));
        fkp_table_cell(&table, FKP_DIM, "%s", text);
        json_t *json = json_object();
        json_object_set_new(json, "name", json_string(name));
        json_object_set(json, "models", users);
        json_array_append_new(workloads, json);
    }
    json_decref(by_name);
    fkp_table_finish(cli, &table);
    json_object_set_new(result, "workloads", workloads);
    fkp_emit(cli, result);
    return FKP_EXIT_OK;
}
