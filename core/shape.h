/* SPDX-License-Identifier: Apache-2.0 */
/* The shape language of .def files. "[..., 2*D]": dims are sums and products (+ - * / and parentheses) of numbers, names
 * and scalar fields. A name takes the size it meets first; a dim with one name still unbound is solved when it has the form
 * k*name (the size must divide by k). "..." stands for any number of leading dims, the same everywhere in a call; "?" for
 * one dim of any size. */
#ifndef FK_CORE_SHAPE_H
#define FK_CORE_SHAPE_H

#include <fk/op.h>

#define FKP_MAX_BINDINGS 24

typedef struct fkp_bindings {
    struct { char name[28]; int64_t value; } items[FKP_MAX_BINDINGS];
    int count;
    int batch_ndim; /* dims of "...", -1 until seen */
    int64_t batch[FK_MAX_NDIM];
} fkp_bindings;

void fkp_bindings_init(fkp_bindings *b);
/* False when the table is full. */
bool fkp_bindings_set(fkp_bindings *b, const char *name, int64_t value);
bool fkp_bindings_get(const fkp_bindings *b, const char *name, int64_t *value);
/* Binds the integer scalars (attributes and constructor arguments) of a call. */
void fkp_bindings_add_scalars(fkp_bindings *b, const fk_op *op, const void *args);

/* Compares an actual shape with `spec`, binding what is unbound. On mismatch writes the reason to `why`. */
bool fkp_shape_match(fkp_bindings *b, const char *spec, int ndim, const int64_t *shape, char *why, size_t why_size);
/* The shape `spec` stands for; false (with the reason) when a name is unbound or a size negative or beyond int64. */
bool fkp_shape_evaluate(const fkp_bindings *b, const char *spec, int *ndim, int64_t *shape, char *why, size_t why_size);
/* Value of one expression such as "H*D/2"; false when a name is unbound or the value beyond int64. */
bool fkp_expression_evaluate(const fkp_bindings *b, const char *expression, int64_t *value);

#endif
