/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of tables. */
#define _GNU_SOURCE
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2

void fkp_table_init(fkp_table *table, const char *const *heads)
{
    *table = (fkp_table){.heads = heads};
    while (heads[table->columns]) table->columns++;
}

void fkp_table_cell(fkp_table *table, fkp_style style, const char *format, ...)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 64;
        fkp_cell *cells = realloc(table->cells, capacity * sizeof *cells);
        if (!cells) return; /* a shorter table; the JSON is whole */
        table->cells = cells;
        table->capacity = capacity;
    }
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    table->cells[table->count++] = (fkp_cell){text, style};
}

int fkp_text_width(const char *text)
{
    int width = 0;
    for (; *text; text++) width += (*text & 0xc0) != 0x80;
    return width;
}

/* Bytes of the first `columns` characters. */
static int bytes_of(const char *text, int columns)
{
    const char *p = text;
    while (*p && columns > 0) {
        p++;
        while ((*p & 0xc0) == 0x80) p++;
        columns--;
    }
    return (int)(p - text);
}

static void print_cell(fkp_cli *cli, const char *text, fkp_style style, int width, bool right, bool last, int room)
{
    int own = fkp_text_width(text), pad = width > own ? width - own : 0;
    bool cut = last && room > 1 && own > room;
    fkp_print(cli, "%*s%s%.*s%s%s", right ? pad : 0, "", fkp_style_on(cli, style),
              cut ? bytes_of(text, room - 1) : (int)strlen(text), text, cut ? "…" : "", fkp_style_off(cli, style));
    if (last) fkp_print(cli, "\n");
    else fkp_print(cli, "%*s", (right ? 0 : pad) + GAP, "");
}

void fkp_table_finish(fkp_cli *cli, fkp_table *table)
{
    int widths[32] = {0}, columns = table->columns < 32 ? table->columns : 32, before_last = 0;
    for (int c = 0; c < columns; c++) widths[c] = fkp_text_width(table->heads[c] + (table->heads[c][0] == '>'));
    for (size_t i = 0; i < table->count; i++) {
        int width = fkp_text_width(table->cells[i].text ? table->cells[i].text : "");
        if (width > widths[i % (size_t)columns]) widths[i % (size_t)columns] = width;
    }
    for (int c = 0; c + 1 < columns; c++) before_last += widths[c] + GAP;
    struct winsize size;
    bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    int room = terminal && size.ws_col > before_last ? size.ws_col - before_last : 0;
    for (int c = 0; c < columns; c++) {
        bool right = table->heads[c][0] == '>';
        print_cell(cli, table->heads[c] + right, FKP_BOLD, widths[c], right, c + 1 == columns, room);
    }
    for (size_t i = 0; i < table->count; i++) {
        int c = (int)(i % (size_t)columns);
        const fkp_cell *cell = &table->cells[i];
        print_cell(cli, cell->text ? cell->text : "", cell->style, widths[c], table->heads[c][0] == '>', c + 1 == columns, room);
        free(cell->text);
    }
    free(table->cells);
    *table = (fkp_table){0};
}
