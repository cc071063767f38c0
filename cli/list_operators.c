/* SPDX-License-Identifier: Apache-2.0 */
/* `list operators`: the registry with what each operator is made of, who implements it and which architectures use it. */
#include <fk/backend.h>

#include <stdlib.h>
#include <string.h>

#include "cli/list.h"
#include "cli/table.h"

/* Operators with a CUDA source in the tree; known without a device. */
static const char *const cuda_built[] = {
#define FKP_CUDA_IMPL(name) #name,
#include "generated/cuda_impls.def"
    NULL};

/* One line of the list: one of ours (op set) or a planned one (row set, op NULL). */
typedef struct entry {
    const fk_op *op;
    int row; /* in fkp_original_operators(); -1: not in it */
} entry;

static int original_row(const char *name)
{
    const fkp_tsv *table = fkp_original_operators();
    for (int row = 0; row < table->count; row++)
        if (fkp_list_has(fkp_tsv_cell(table, row, "declared_as"), name)) return row;
    return fkp_tsv_find(table, "operator", name);
}

const char *fkp_operator_users(const fk_op *op)
{
    int row = original_row(op->name);
    return row >= 0 ? fkp_tsv_cell(fkp_original_operators(), row, "used_by") : "";
}

static bool is_built(const fkp_tsv *table, int row)
{
    if (fk_op_find(fkp_tsv_cell(table, row, "operator"))) return true;
    for (int i = 0; i < fk_op_count(); i++)
        if (fkp_list_has(fkp_tsv_cell(table, row, "declared_as"), fk_op_at(i)->name)) return true;
    return false;
}

static const char *entry_name(const entry *e)
{
    return e->op ? e->op->name : fkp_tsv_cell(fkp_original_operators(), e->row, "operator");
}

static int entry_level(const entry *e)
{
    return e->op ? e->op->level : fkp_tsv_cell(fkp_original_operators(), e->row, "level")[1] - '0';
}

static const char *entry_used_by(const entry *e)
{
    return e->row >= 0 ? fkp_tsv_cell(fkp_original_operators(), e->row, "used_by") : "";
}

/* "norm" of "norm/rms_norm.def"; "" for planned ones. */
static const char *entry_family(const entry *e, char buf[64])
{
    snprintf(buf, 64, "%.*s", e->op ? (int)strcspn(e->op->family, "/") : 0, e->op ? e->op->family : "");
    return buf;
}

static json_t *strings_of(const char *list)
{
    json_t *array = json_array();
    for (const char *p = list; *p;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ",");
        if (n) json_array_append_new(array, json_stringn(p, n));
        p += n;
    }
    return array;
}

static json_t *dtypes_of(const fk_field *field)
{
    if (field->dtypes.as) return json_sprintf("as %s", field->dtypes.as);
    json_t *array = json_array();
    for (int d = 1; d < FK_DTYPE_COUNT; d++)
        if (field->dtypes.mask & 1u << d) json_array_append_new(array, json_string(fk_dtype_name((fk_dtype)d)));
    return array;
}

static json_t *describe_field(const fk_field *field)
{
    static const char *const kinds[] = {"out",    "out_max", "inout",  "state", "in",          "context",
                                        "weight", "init",    "config", "attr",  "context_attr"};
    static const char *const types[] = {"", "bool", "int", "float", "string"};
    json_t *json = json_object();
    json_object_set_new(json, "name", json_string(field->name));
    json_object_set_new(json, "kind", json_string(kinds[field->kind]));
    if (fk_field_is_tensor(field)) {
        json_object_set_new(json, "shape", json_string(field->shape));
        json_object_set_new(json, "dtypes", dtypes_of(field));
        json_object_set_new(json, "optional", json_boolean(field->optional));
        if (field->checkpoint_name) json_object_set_new(json, "checkpoint_name", json_string(field->checkpoint_name));
    } else {
        bool required = strcmp(field->default_text, "FK_REQUIRED") == 0;
        json_object_set_new(json, "type", json_string(types[field->attr_type]));
        json_object_set_new(json, "default", required ? json_null() : json_string(field->default_text));
    }
    json_object_set_new(json, "doc", fkp_json_text(field->doc));
    return json;
}

static void append_impl(json_t *array, const char *name, const char *device, bool fused)
{
    json_t *json = json_object();
    json_object_set_new(json, "name", json_string(name));
    json_object_set_new(json, "device", json_string(device));
    json_object_set_new(json, "fused", json_boolean(fused));
    json_array_append_new(array, json);
}

/* The reference, what this machine's CPU level runs, and the CUDA kernels: of the device when there is one, else of the tree. */
static json_t *implementations_of(const fk_op *op)
{
    json_t *array = json_array();
    fk_backend *backends[2] = {NULL, NULL};
    if (!op) return array;
    append_impl(array, "reference", "cpu", false);
    bool cuda = fk_backend_get((fk_device){FK_CUDA, 0}, &backends[1]) == FK_OK;
    if (fk_backend_get((fk_device){FK_CPU, 0}, &backends[0]) != FK_OK) backends[0] = NULL;
    for (int b = 0; b < 2; b++)
        for (int i = 0; backends[b] && i < backends[b]->num_impls; i++) {
            const fk_impl *impl = backends[b]->impls[i];
            if (strcmp(impl->op, op->name) == 0) append_impl(array, impl->name, backends[b]->name, impl->fused);
        }
    for (const char *const *name = cuda_built; !cuda && *name; name++)
        if (strcmp(*name, op->name) == 0) append_impl(array, "cuda", "cuda", op->level > 1);
    return array;
}

static json_t *describe(const entry *e)
{
    char family[64];
    json_t *json = json_object(), *inputs = json_array(), *outputs = json_array(), *attrs = json_array();
    json_object_set_new(json, "name", json_string(entry_name(e)));
    json_object_set_new(json, "level", json_sprintf("L%d", entry_level(e)));
    json_object_set_new(json, "family", json_string(entry_family(e, family)));
    json_object_set_new(json, "formula", e->op ? json_string(e->op->formula) : json_null());
    json_object_set_new(json, "mirrors", e->op && e->op->mirrors_symbol
                                             ? json_sprintf("%s %s", e->op->mirrors_library, e->op->mirrors_symbol)
                                             : json_null());
    for (int i = 0; e->op && i < e->op->num_fields; i++) {
        const fk_field *field = &e->op->fields[i];
        if (!fk_field_is_tensor(field)) json_array_append_new(attrs, describe_field(field));
        else if (field->kind == FK_FIELD_OUT || field->kind == FK_FIELD_OUT_MAX)
            json_array_append_new(outputs, describe_field(field));
        else {
            json_array_append_new(inputs, describe_field(field));
            if (fk_field_is_written(field)) json_array_append_new(outputs, describe_field(field));
        }
    }
    json_object_set_new(json, "inputs", inputs);
    json_object_set_new(json, "outputs", outputs);
    json_object_set_new(json, "attrs", attrs);
    json_object_set_new(json, "implementations", implementations_of(e->op));
    json_object_set_new(json, "used_by", strings_of(entry_used_by(e)));
    return json;
}

static int by_level(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int levels = entry_level(x) - entry_level(y);
    return levels ? levels : strcmp(entry_name(x), entry_name(y));
}

/* Fills `entries` (room for both tables) with what the options ask for. */
static fk_status select_entries(const fkp_list_options *options, entry *entries, int *count)
{
    unsigned levels;
    int model_row;
    char family[64], model[64] = "";
    *count = 0;
    FK_TRY(fkp_parse_levels(options->level, &levels));
    if (options->family) FK_TRY(fkp_check_family(options->family, true));
    FK_TRY(fkp_list_model_row(options, &model_row));
    if (model_row >= 0) snprintf(model, sizeof model, "%s", fkp_tsv_cell(fkp_architectures(), model_row, "architecture"));
    int original = fkp_original_operators()->count;
    for (int i = 0; i < fk_op_count() + (options->planned ? original : 0); i++) {
        entry e = {.row = i - fk_op_count()};
        if (i < fk_op_count()) e = (entry){fk_op_at(i), original_row(fk_op_at(i)->name)};
        else if (is_built(fkp_original_operators(), e.row)) continue;
        if (!(levels & 1u << entry_level(&e))) continue;
        if (options->family && strcmp(entry_family(&e, family), options->family) != 0) continue;
        if (*model && !fkp_list_has(entry_used_by(&e), model)) continue;
        entries[(*count)++] = e;
    }
    qsort(entries, (size_t)*count, sizeof *entries, by_level);
    return FK_OK;
}

static void print_table(fkp_cli *cli, const entry *entries, json_t *list)
{
    static const char *const heads[] = {"LEVEL", "OPERATOR", "FAMILY", ">MODELS", "IMPLEMENTATIONS", "MIRRORS", NULL};
    fkp_table table;
    char family[64];
    fkp_table_init(&table, heads);
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        const entry *e = &entries[i];
        char impls[512] = "";
        size_t k, used = 0;
        json_t *impl;
        json_array_foreach(json_object_get(item, "implementations"), k, impl)
            if (used < sizeof impls)
                used += (size_t)snprintf(impls + used, sizeof impls - used, "%s%s", k ? " " : "",
                                         json_string_value(json_object_get(impl, "name")));
        const char *mirrors = json_string_value(json_object_get(item, "mirrors"));
        fkp_table_cell(&table, FKP_DIM, "L%d", entry_level(e));
        fkp_table_cell(&table, e->op ? FKP_BOLD : FKP_DIM, "%s", entry_name(e));
        fkp_table_cell(&table, FKP_PLAIN, "%s", entry_family(e, family));
        fkp_table_cell(&table, FKP_PLAIN, "%zu", json_array_size(json_object_get(item, "used_by")));
        fkp_table_cell(&table, e->op ? FKP_GREEN : FKP_DIM, "%s", e->op ? impls : "planned");
        fkp_table_cell(&table, FKP_DIM, "%s", mirrors ? mirrors : "");
    }
    fkp_table_finish(cli, &table);
}

/* Operators down, architectures across; names of architectures run downwards. */
static void print_map(fkp_cli *cli, const entry *entries, int count)
{
    const fkp_tsv *models = fkp_architectures();
    int width = 8, height = 0;
    for (int i = 0; i < count; i++)
        if ((int)strlen(entry_name(&entries[i])) > width) width = (int)strlen(entry_name(&entries[i]));
    for (int m = 0; m < models->count; m++)
        if ((int)strlen(fkp_tsv_cell(models, m, "architecture")) > height) height = (int)strlen(fkp_tsv_cell(models, m, "architecture"));
    for (int line = 0; line < height; line++) {
        fkp_print(cli, "%*s", width + 4, "");
        for (int m = 0; m < models->count; m++) {
            const char *name = fkp_tsv_cell(models, m, "architecture");
            int skip = height - (int)strlen(name);
            fkp_print(cli, " %c", line < skip ? ' ' : name[line - skip]);
        }
        fkp_print(cli, "\n");
    }
    for (int i = 0; i < count; i++) {
        const entry *e = &entries[i];
        fkp_print(cli, "L%d  %s%-*s%s", entry_level(e), fkp_style_on(cli, e->op ? FKP_BOLD : FKP_DIM), width, entry_name(e),
                  fkp_style_off(cli, e->op ? FKP_BOLD : FKP_DIM));
        for (int m = 0; m < models->count; m++) {
            bool used = fkp_list_has(entry_used_by(e), fkp_tsv_cell(models, m, "architecture"));
            fkp_print(cli, " %s", !used ? "·" : e->op ? "●" : "○");
        }
        fkp_print(cli, "\n");
    }
    fkp_print(cli, "\n● used and built   ○ used, not built yet (--planned)   · not used\n");
}

int fkp_list_operators(fkp_cli *cli, const fkp_list_options *options)
{
    entry *entries = calloc((size_t)(fk_op_count() + fkp_original_operators()->count), sizeof *entries);
    if (!entries) return fkp_exit(cli, fk_fail(FK_ERROR_MEMORY, "out of memory"));
    int count;
    fk_status status = select_entries(options, entries, &count);
    if (status == FK_OK) {
        json_t *result = fkp_result(cli, "list"), *list = json_array();
        for (int i = 0; i < count; i++) json_array_append_new(list, describe(&entries[i]));
        if (options->map && fkp_prints(cli)) print_map(cli, entries, count);
        else if (fkp_prints(cli)) print_table(cli, entries, list);
        json_object_set_new(result, "operators", list);
        fkp_emit(cli, result);
    }
    free(entries);
    return fkp_exit(cli, status);
}
