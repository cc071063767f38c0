/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates as files: which ones a folder holds. */
#ifndef FK_BENCH_CANDIDATE_FILES_H
#define FK_BENCH_CANDIDATE_FILES_H

#include <fk/op.h>

typedef enum fkp_candidate_kind { FKP_CANDIDATE_C, FKP_CANDIDATE_CUDA, FKP_CANDIDATE_LIBRARY } fkp_candidate_kind;

typedef struct fkp_candidate_file {
    const fk_op *op;
    fkp_candidate_kind kind;
    char path[1024];
} fkp_candidate_file;

typedef struct fkp_candidate_list {
    fkp_candidate_file *items;
    int count;
} fkp_candidate_list;

/* The candidates of a folder, or the one file, that are made for the device, at most one an operator. FK_ERROR_INVALID
 * names: a folder without any, a file whose name is no operator (with the nearest one), two files for one operator. */
fk_status fkp_candidates_find(const char *path, fk_device_type device, fkp_candidate_list *out);
void fkp_candidates_deinit(fkp_candidate_list *list);

#endif
