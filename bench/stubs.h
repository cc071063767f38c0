/* SPDX-License-Identifier: Apache-2.0 */
/* Files to start a candidate from: the operator's declaration and its captured cases as a comment, then a body. Correct,
 * naive bodies are ops/<family>/<op>_stub.c and .cu; where there is none the stub returns an error that says so. */
#ifndef FK_BENCH_STUBS_H
#define FK_BENCH_STUBS_H

#include <stdio.h>

#include "bench/cases.h"

typedef struct fkp_stub {
    char path[1200];
    bool complete; /* computes the operator; false: there is a body to fill in */
} fkp_stub;

/* Writes `folder`/<op>.c (or .cu). `cases` may be NULL; those of the operator are listed. FK_ERROR_INVALID: the file
 * exists, and stays. */
fk_status fkp_stub_write(const fk_op *op, bool cuda, const char *folder, const fkp_case_list *cases, fkp_stub *out);

/* Makes `folder`/<op> with TASK.md, the stub and the headers that it needs. FK_ERROR_INVALID: that folder exists. */
fk_status fkp_stub_write_task(const fk_op *op, bool cuda, const char *folder, const fkp_case_list *cases, fkp_stub *out);

/* The operator's fields, and its captured calls, one a line after `margin`. */
void fkp_stub_fields(FILE *f, const fk_op *op, const char *margin);
void fkp_stub_cases(FILE *f, const fk_op *op, const fkp_case_list *cases, const char *margin);

#endif
