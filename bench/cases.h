/* SPDX-License-Identifier: Apache-2.0 */
/* Cases to judge: an operator, its scalars, the shapes, strides and dtypes of its tensors, and what is known of their
 * values. They come from captures, from the operator's declared cases, or from fuzzing around either. */
#ifndef FK_BENCH_CASES_H
#define FK_BENCH_CASES_H

#include <fk/op.h>

#include "core/random.h"

/* What stands in a tensor. */
typedef struct fkp_values {
    const void *captured; /* contiguous values, in host memory of the capture file; NULL when they were not kept */
    double mean, std;     /* of float tensors; 0 and 1 when unknown */
    bool structured;      /* the operator's fill writes it (indices, lengths, tables): random values would be wrong */
} fkp_values;

typedef struct fkp_case {
    const fk_op *op;
    char *text;   /* canonical: "input=f32[7, 576] weight=f32[576] epsilon=1e-05" */
    char *source; /* "declared", "given", "capture <file>", "fuzz" */
    uint64_t hash; /* of operator, signature and text, and of captured values */
    int64_t count; /* calls seen by the capture; 1 else */
    void *args;    /* args struct; tensor pointers point into `tensors`, which have no memory */
    fk_tensor *tensors;
    fkp_values *values;
    char **strings; /* of string scalars, one a field */
} fkp_case;

typedef struct fkp_case_list {
    fkp_case *items;
    int count, capacity;
    struct fk_safetensors **files; /* hold captured values */
    int num_files;
} fkp_case_list;

/* An empty case of `op` for filling in; all tensors absent, all scalars zero. */
fk_status fkp_case_init(fkp_case *c, const fk_op *op);
/* Makes field `index` present. */
void fkp_case_set_tensor(fkp_case *c, int index, fk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides);
/* The text of a string scalar is copied. */
fk_status fkp_case_set_string(fkp_case *c, int index, const char *text);
/* Renames where the case comes from. */
fk_status fkp_case_set_source(fkp_case *c, const char *source);
/* Sets text and hash from what is there. */
fk_status fkp_case_finish(fkp_case *c, const char *source);
void fkp_case_deinit(fkp_case *c);

/* A declared case, in the language of core/case.h. */
fk_status fkp_case_parse(fkp_case *c, const fk_op *op, const char *text, fk_dtype dtype);

fk_status fkp_case_list_add(fkp_case_list *list, fkp_case *take);
void fkp_case_list_deinit(fkp_case_list *list);
/* All declared cases of the operator. */
fk_status fkp_cases_declared(fkp_case_list *list, const fk_op *op, fk_dtype dtype);
/* Cases that the user gives, separated by ';', in the same language; the word dtype=D chooses the dtype of a case. */
fk_status fkp_cases_given(fkp_case_list *list, const fk_op *op, const char *text, fk_dtype dtype);
/* `count` cases whose dims lie around the declared ones and that the operator accepts. */
struct fkp_judge;
fk_status fkp_cases_fuzz(fkp_case_list *list, const fk_op *op, fk_dtype dtype, int count, uint64_t seed,
                         struct fkp_judge *judge);
/* The cases of a capture folder (bench/capture.c) of the operators wanted[op->index] (NULL: all). */
fk_status fkp_cases_captured(fkp_case_list *list, const char *folder, const bool *wanted);
/* Keeps at most `most` cases of each operator: the smallest, the largest and the middle one by elements, then those with the
 * largest counts. Sorted by then. */
void fkp_cases_select(fkp_case_list *list, int most);
/* By level, operator, falling count. */
void fkp_cases_sort(fkp_case_list *list);

/* The dtype people read for a case: that of its first float tensor, else of its first tensor. */
fk_dtype fkp_case_dtype(const fkp_case *c);
/* Shapes of the inputs, "[7, 576] [576]". */
const char *fkp_case_shapes(const fkp_case *c, char *buf, size_t size);

#endif
