/* SPDX-License-Identifier: Apache-2.0 */
/* Files to start a candidate from: the operator's signature as a comment, its captured cases, and a correct, naive body
 * (ops/<family>/<op>_stub.c or .cu). */
#ifndef FK_BENCH_STUBS_H
#define FK_BENCH_STUBS_H

#include "bench/cases.h"

/* Writes `folder`/<op>.c (or .cu). `cases` may be NULL; those of the operator are listed. `path` gets the file's name.
 * FK_ERROR_UNSUPPORTED: there is no body for this operator and language; FK_ERROR_INVALID: the file exists, and stays. */
fk_status fkp_stub_write(const fk_op *op, bool cuda, const char *folder, const fkp_case_list *cases, char path[1200]);

#endif
