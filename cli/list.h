/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `list` share. */
#ifndef FK_CLI_LIST_H
#define FK_CLI_LIST_H

#include <fk/op.h>

#include "cli/data_tables.h"
#include "cli/output.h"
#include "cli/paths.h"

typedef struct fkp_list_options {
    const char *level, *model, *family, *scenario, *candidates;
    bool map, planned;
} fkp_list_options;

int fkp_list_operators(fkp_cli *cli, const fkp_list_options *options);
int fkp_list_models(fkp_cli *cli, const fkp_list_options *options);
int fkp_list_families(fkp_cli *cli, const fkp_list_options *options);
int fkp_list_workloads(fkp_cli *cli, const fkp_list_options *options);
int fkp_list_scenarios(fkp_cli *cli, const fkp_list_options *options);
int fkp_list_candidates(fkp_cli *cli, const fkp_list_options *options);

/* Architectures that use an operator, "llama,mixtral". */
const char *fkp_operator_users(const fk_op *op);
/* Row of an architecture in fkp_architectures(), by its name, a named configuration ("llama:8b") or an asset. */
fk_status fkp_find_architecture(const char *name, int *row);
/* Row that --model and --scenario ask for; -1 for every model. */
fk_status fkp_list_model_row(const fkp_list_options *options, int *row);
fk_status fkp_scenarios_folder(char path[FKP_PATH_SIZE]);
fk_status fkp_check_family(const char *family, bool of_operators);

#endif
