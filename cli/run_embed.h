/* SPDX-License-Identifier: Apache-2.0 */
/* `run --embed` and `run --search FILE`: what encoders give. */
#ifndef FK_CLI_RUN_EMBED_H
#define FK_CLI_RUN_EMBED_H

#include "cli/command.h"

typedef struct fkp_embed_options {
    const char *model, *dtype;
    const char *prompt, *prompt_ids, *file; /* the text, or the query; one of them, else stdin */
    const char *search;                     /* the file to search; NULL: the vector of the text is wanted */
    const char *trace, *candidates;
    bool references_only;
    int64_t best;                           /* passages to show */
} fkp_embed_options;

/* An exit code. */
int fkp_run_embed(fkp_cli *cli, const fkp_embed_options *options);

#endif
