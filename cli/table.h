/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people: columns as wide as their cells, the last one cut at the terminal's edge. */
#ifndef FK_CLI_TABLE_H
#define FK_CLI_TABLE_H

#include "cli/output.h"

typedef struct fkp_cell {
    char *text;
    fkp_style style;
} fkp_cell;

typedef struct fkp_table {
    const char *const *heads; /* a head that begins with '>' makes its column right-aligned */
    int columns;
    fkp_cell *cells; /* row by row */
    size_t count, capacity;
} fkp_table;

/* `heads` is borrowed and ends with NULL. */
void fkp_table_init(fkp_table *table, const char *const *heads);
/* The next cell, row by row. */
void fkp_table_cell(fkp_table *table, fkp_style style, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Prints and frees. */
void fkp_table_finish(fkp_cli *cli, fkp_table *table);

/* Columns that a terminal would show for this UTF-8 text (every character counted as one). */
int fkp_text_width(const char *text);

#endif
