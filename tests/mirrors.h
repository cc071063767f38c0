/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of an operator's fields with the production signature it mirrors (mirrors/README.md). */
#ifndef FK_TESTS_MIRRORS_H
#define FK_TESTS_MIRRORS_H

#include <fk/op.h>

typedef struct mirror_row {
    char symbol[160], name[64], type[96], default_text[64], mutated[4];
    bool is_return;
} mirror_row;

typedef struct mirror_table {
    mirror_row *rows; /* in the order of the file */
    int count;
} mirror_table;

/* The rows of one operator's signature in mirrors/<library>-*.tsv below `folder`: those of a function, or of a class's
 * __init__ and forward (forward_native where there is no forward). False with the reason. */
bool mirror_load(const char *folder, const fk_op *op, mirror_table *out, char *why, size_t why_size);
void mirror_free(mirror_table *table);

/* What a .def narrows on purpose: an argument that production may leave out and we require, or whose type we take in one
 * form only. */
typedef struct mirror_narrowing {
    const char *op, *argument, *reason;
} mirror_narrowing;

/* True when fields and signature agree: names, order, types, defaults, mutation marks; every argument is a field or an
 * omission, every omission an argument. Else the first difference in `why`. */
bool mirror_matches(const fk_op *op, const mirror_table *table, const mirror_narrowing *narrowings, char *why, size_t why_size);
/* The row of a field; NULL when it has none. */
mirror_row *mirror_find(const fk_op *op, const mirror_table *table, const fk_field *field);
/* False for fields that are no arguments of production code: context, state, configuration, weights. */
bool mirror_concerns(const fk_field *field);

#endif
