/* SPDX-License-Identifier: Apache-2.0 */
/* A case: one call of an operator as text, and host arguments made from it. The text gives shapes and scalars,
 *   "T=7 D=64 epsilon=1e-5 weight=absent positions=i32"
 * name=value separated by spaces. A name is a dimension of the .def's shapes, a scalar field (True, False, numbers, text
 * without spaces), or a tensor field with `absent` (optional ones) or its dtype. T gives the leading dims "..." of an
 * operator that has them, several as T=2x3. Scalars that are left out take the default of the .def, when it is a value.
 * Tensors are contiguous host memory, owned by the case. */
#ifndef FK_CORE_CASE_H
#define FK_CORE_CASE_H

#include <fk/op.h>

typedef struct fk_case {
    const fk_op *op;
    void *args;         /* fk_<op>_args; its tensors are those below */
    fk_tensor *tensors; /* one a field, FK_ABSENT for scalars and what is absent */
    char **strings;     /* text scalars, one a field, else NULL */
} fk_case;

/* How float inputs are drawn: standard normal, or with zeros, ties, outliers, denormals and large rows mixed in. */
typedef enum fk_case_values { FK_VALUES_NORMAL, FK_VALUES_EDGES } fk_case_values;

/* Float tensors that may choose get `dtype`, integer ones i64. FK_ERROR_INVALID names what is wrong with the text. */
fk_status fk_case_create(const fk_op *op, const char *text, fk_dtype dtype, fk_case *out);
void fk_case_destroy(fk_case *c);
/* Fills every tensor that the operator reads, repeatable from the seed; outputs are left alone. */
void fk_case_fill(const fk_case *c, uint64_t seed, fk_case_values values);
/* The same for arguments from elsewhere (a captured call): writable host tensors, of any strides. Weights are scaled by
 * their fan-in and norm weights stand around 1, so that layers keep their inputs' scale. */
void fk_args_fill(const fk_op *op, const void *args, uint64_t seed, fk_case_values values);

#endif
