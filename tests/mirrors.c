/* SPDX-License-Identifier: Apache-2.0 */
/* Reading mirrors/<library>-*.tsv and the rules of comparison. */
#include "mirrors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find_file(const char *folder, const char *library, char *path, size_t size)
{
    DIR *dir = opendir(folder);
    size_t n = strlen(library);
    bool found = false;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, library, n) != 0 || entry->d_name[n] != '-' || length < 4 ||
            strcmp(entry->d_name + length - 4, ".tsv") != 0)
            continue;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        found = true;
    }
    if (dir) closedir(dir);
    return found;
}

/* The next column of a line into `to`, cut when too long. */
static void cut(char *to, size_t size, char **line)
{
    size_t n = strcspn(*line, "\t\n"), kept = n < size ? n : size - 1;
    memcpy(to, *line, kept);
    to[kept] = 0;
    *line += n + ((*line)[n] != 0);
}

static void parse_row(char *line, mirror_row *row)
{
    *row = (mirror_row){0};
    cut(row->symbol, sizeof row->symbol, &line);
    char position[16];
    cut(position, sizeof position, &line);
    row->is_return = strcmp(position, "return") == 0;
    line += strspn(line, "*");
    cut(row->name, sizeof row->name, &line);
    cut(row->type, sizeof row->type, &line);
    cut(row->default_text, sizeof row->default_text, &line);
    cut(row->mutated, sizeof row->mutated, &line);
}

/* Appends the rows of `symbol`, in the order of the file. */
static bool append(const char *path, const char *symbol, mirror_table *out)
{
    FILE *file = fopen(path, "r");
    char line[2048];
    int before = out->count;
    size_t n = strlen(symbol);
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, symbol, n) != 0 || line[n] != '\t') continue;
        mirror_row *rows = realloc(out->rows, (size_t)(out->count + 1) * sizeof *rows);
        if (!rows) break;
        out->rows = rows;
        parse_row(line, &rows[out->count++]);
    }
    if (file) fclose(file);
    return out->count > before;
}

bool mirror_load(const char *folder, const fk_op *op, mirror_table *out, char *why, size_t why_size)
{
    char path[1024], symbol[200];
    *out = (mirror_table){0};
    if (!op->mirrors_library || !find_file(folder, op->mirrors_library, path, sizeof path)) {
        snprintf(why, why_size, "%s: no table of library %s", op->name, op->mirrors_library ? op->mirrors_library : "(none)");
        return false;
    }
    bool found;
    if (op->is_module) {
        snprintf(symbol, sizeof symbol, "%s.__init__", op->mirrors_symbol);
        found = append(path, symbol, out);
        snprintf(symbol, sizeof symbol, "%s.forward", op->mirrors_symbol);
        bool forward = append(path, symbol, out);
        if (!forward) {
            snprintf(symbol, sizeof symbol, "%s.forward_native", op->mirrors_symbol);
            forward = append(path, symbol, out);
        }
        found &= forward;
    } else {
        found = append(path, op->mirrors_symbol, out);
    }
    if (!found) snprintf(why, why_size, "%s: %s has no %s", op->name, path, op->is_module ? symbol : op->mirrors_symbol);
    return found;
}

void mirror_free(mirror_table *table)
{
    free(table->rows);
    *table = (mirror_table){0};
}

static bool is_init(const mirror_row *row)
{
    size_t n = strlen(row->symbol);
    return n > 9 && strcmp(row->symbol + n - 9, ".__init__") == 0;
}

bool mirror_concerns(const fk_field *f)
{
    return f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX || f->kind == FK_FIELD_INOUT || f->kind == FK_FIELD_IN ||
           f->kind == FK_FIELD_INIT || f->kind == FK_FIELD_ATTR;
}

static mirror_row *find(const mirror_table *table, const char *name, bool init)
{
    for (int i = 0; i < table->count; i++)
        if (!table->rows[i].is_return && is_init(&table->rows[i]) == init && strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

mirror_row *mirror_find(const fk_op *op, const mirror_table *table, const fk_field *field)
{
    (void)op;
    return find(table, field->name, field->kind == FK_FIELD_INIT);
}

/* "Tensor?", "Optional[torch.Tensor]", "int | None" */
static bool is_optional_type(const char *type)
{
    size_t n = strlen(type);
    return (n && type[n - 1] == '?') || strncmp(type, "Optional[", 9) == 0 || strstr(type, "| None");
}

/* The word itself, not part of another ("int" in "SymInt" and "Union[torch.Tensor, int]", but not in "integer"). */
static bool names_type(const char *type, const char *word)
{
    size_t n = strlen(word);
    for (const char *s = strstr(type, word); s; s = strstr(s + 1, word)) {
        char before = s == type ? ' ' : s[-1], after = s[n];
        if (strchr(" .[|,(", before) && (!after || strchr(" ?[]|,)", after))) return true;
    }
    return false;
}

static bool type_fits(const fk_field *f, const mirror_row *row)
{
    static const char *const words[][2] = {[FK_ATTR_bool] = {"bool", "bool"}, [FK_ATTR_int] = {"int", "SymInt"},
                                           [FK_ATTR_float] = {"float", "float"}, [FK_ATTR_string] = {"str", "str"}};
    if (fk_field_is_tensor(f)) return strcmp(row->type, "-") == 0 || names_type(row->type, "Tensor");
    if (strcmp(row->type, "-") != 0) {
        if (names_type(row->type, "list")) return false;
        return names_type(row->type, words[f->attr_type][0]) || names_type(row->type, words[f->attr_type][1]);
    }
    /* Untyped: the default tells. */
    const char *d = row->default_text;
    if (strcmp(d, "-") == 0 || strcmp(d, "None") == 0) return true;
    if (strcmp(d, "True") == 0 || strcmp(d, "False") == 0) return f->attr_type == FK_ATTR_bool;
    if (d[0] == '"') return f->attr_type == FK_ATTR_string;
    return f->attr_type == (strpbrk(d, ".e") ? FK_ATTR_float : FK_ATTR_int);
}

static bool is_out(const fk_field *f)
{
    return f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX;
}

/* The same literal; a string of Python has its quotes single or double. */
static bool same_literal(const char *ours, const char *theirs)
{
    size_t n = strlen(ours);
    if (strcmp(ours, theirs) == 0) return true;
    return n >= 2 && ours[0] == '"' && theirs[0] == '\'' && strlen(theirs) == n && theirs[n - 1] == '\'' && strncmp(ours + 1, theirs + 1, n - 2) == 0;
}

static bool default_fits(const fk_field *f, const mirror_row *row)
{
    bool none = strcmp(row->default_text, "None") == 0, required = strcmp(row->default_text, "-") == 0;
    if (!fk_field_is_tensor(f)) return same_literal(f->default_text, required ? "FK_REQUIRED" : row->default_text);
    if (!none && !required) return false;
    return is_out(f) || f->optional == (none || is_optional_type(row->type)); /* absent outputs are allocated */
}

/* Schemas say what they mutate; Python sources do not. */
static bool mutation_fits(const fk_field *f, const mirror_row *row)
{
    bool marked = strcmp(row->mutated, "!") == 0, written = fk_field_is_tensor(f) && fk_field_is_written(f);
    return strstr(row->symbol, "::") ? marked == written : !marked || written;
}

static bool narrowed(const mirror_narrowing *n, const fk_op *op, const char *argument)
{
    for (; n && n->op; n++)
        if (strcmp(n->op, op->name) == 0 && strcmp(n->argument, argument) == 0) return true;
    return false;
}

static bool is_omitted(const fk_op *op, const char *name)
{
    for (const fk_omission *o = op->omissions; o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

static bool returns_value(const mirror_table *table)
{
    for (int i = 0; i < table->count; i++)
        if (table->rows[i].is_return && !is_init(&table->rows[i])) return strcmp(table->rows[i].type, "()") != 0;
    return false;
}

bool mirror_matches(const fk_op *op, const mirror_table *table, const mirror_narrowing *narrowings, char *why, size_t why_size)
{
    const mirror_row *last[2] = {NULL, NULL}; /* of forward, of __init__ */
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        if (!mirror_concerns(f)) continue;
        const mirror_row *row = mirror_find(op, table, f);
        if (!row) {
            if (is_out(f) && returns_value(table)) continue;
            snprintf(why, why_size, "%s: %s is no argument of %s", op->name, f->name, op->mirrors_symbol);
            return false;
        }
        const char *wrong = NULL;
        bool narrow = narrowed(narrowings, op, f->name);
        if (last[is_init(row)] && row < last[is_init(row)]) wrong = "stands at another place";
        else if (!narrow && !type_fits(f, row)) wrong = "has another type";
        else if (!narrow && !default_fits(f, row)) wrong = "has another default";
        else if (!mutation_fits(f, row)) wrong = "is mutated in one of the two only";
        else if (is_omitted(op, f->name)) wrong = "is a field and an omission";
        if (wrong) {
            snprintf(why, why_size, "%s: %s %s: %s %s default %s mutated %s in %s", op->name, f->name, wrong, row->name, row->type,
                     row->default_text, row->mutated, row->symbol);
            return false;
        }
        last[is_init(row)] = row;
    }
    for (int i = 0; i < table->count; i++) {
        const mirror_row *row = &table->rows[i];
        if (row->is_return || is_omitted(op, row->name)) continue;
        bool found = false;
        for (int k = 0; k < op->num_fields && !found; k++)
            found = mirror_concerns(&op->fields[k]) && mirror_find(op, table, &op->fields[k]) == row;
        if (found) continue;
        snprintf(why, why_size, "%s: argument %s of %s has no field and no FK_OMIT", op->name, row->name, row->symbol);
        return false;
    }
    for (const fk_omission *o = op->omissions; o->name; o++)
        if (!find(table, o->name, false) && !find(table, o->name, true)) {
            snprintf(why, why_size, "%s: FK_OMIT(%s) names no argument of %s", op->name, o->name, op->mirrors_symbol);
            return false;
        }
    return true;
}
