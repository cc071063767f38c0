/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the compiled-in tables. They are ours, so a malformed one is a programmer's mistake. */
#include "cli/data_tables.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char fkp_data_architectures[], fkp_data_operators[];

/* Comments begin with '#'. */
static void parse(fkp_tsv *table, const unsigned char *data)
{
    size_t size = strlen((const char *)data) + 1;
    table->text = malloc(size);
    assert(table->text);
    memcpy(table->text, data, size);
    size_t lines = 1;
    for (char *p = table->text; *p; p++) lines += *p == '\n';
    table->rows = calloc(lines, sizeof *table->rows);
    assert(table->rows);
    int rows = 0;
    for (char *line = table->text; line && *line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        if (*line && *line != '#') {
            int column = 0;
            for (char *cell = line; cell;) {
                char *tab = strchr(cell, '\t');
                if (tab) *tab++ = 0;
                assert(column < FKP_TSV_COLUMNS);
                table->rows[rows][column++] = strcmp(cell, "-") == 0 ? "" : cell;
                cell = tab;
            }
            if (rows == 0) table->columns = column;
            while (column < FKP_TSV_COLUMNS) table->rows[rows][column++] = "";
            rows++;
        }
        line = next;
    }
    table->count = rows - 1;
}

const fkp_tsv *fkp_architectures(void)
{
    static fkp_tsv table;
    if (!table.text) parse(&table, fkp_data_architectures);
    return &table;
}

const fkp_tsv *fkp_original_operators(void)
{
    static fkp_tsv table;
    if (!table.text) parse(&table, fkp_data_operators);
    return &table;
}

const char *fkp_tsv_cell(const fkp_tsv *table, int row, const char *column)
{
    for (int c = 0; c < table->columns; c++)
        if (strcmp(table->rows[0][c], column) == 0) return table->rows[1 + row][c];
    assert(!"column exists");
    return "";
}

int fkp_tsv_find(const fkp_tsv *table, const char *column, const char *value)
{
    for (int row = 0; row < table->count; row++)
        if (strcmp(fkp_tsv_cell(table, row, column), value) == 0) return row;
    return -1;
}

bool fkp_list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; *p;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ",");
        if (n == length && strncmp(p, word, n) == 0) return true;
        p += n;
    }
    return false;
}
