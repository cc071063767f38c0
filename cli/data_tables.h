/* SPDX-License-Identifier: Apache-2.0 */
/* Tab-separated tables of the tree that are compiled in: architectures, operators of the original. */
#ifndef FK_CLI_DATA_TABLES_H
#define FK_CLI_DATA_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#define FKP_TSV_COLUMNS 12

typedef struct fkp_tsv {
    char *text;
    const char *(*rows)[FKP_TSV_COLUMNS]; /* rows[0] names the columns; missing cells are "" */
    int count;                            /* rows, without the first */
    int columns;
} fkp_tsv;

/* Parsed on first use and kept: models/architectures.tsv, ops/operators.tsv. */
const fkp_tsv *fkp_architectures(void);
const fkp_tsv *fkp_original_operators(void);

/* Cell of row (0 to count - 1) in the column with that name; "-" reads as "". */
const char *fkp_tsv_cell(const fkp_tsv *table, int row, const char *column);
/* Row whose `column` is `value`; -1 when there is none. */
int fkp_tsv_find(const fkp_tsv *table, const char *column, const char *value);
/* Whether a comma-separated list ("a,b" or "a, b") holds the word. */
bool fkp_list_has(const char *list, const char *word);

#endif
