/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run candidates in their own process are run by a child, which this process outlives: whatever a candidate
 * does there (crash, end the process, hang, print), there is a message, an exit code, and one record. */
#ifndef FK_CLI_SUPERVISE_H
#define FK_CLI_SUPERVISE_H

#include <jansson.h>

#include "cli/command.h"

/* Forks. In the parent it waits for the child, writes what the child had to say and returns true with the exit code; in the
 * child it returns false. Before any thread, device or output is opened. */
bool fkp_supervise(fkp_cli *cli, int *code);

/* In the child, and nothing elsewhere: */
bool fkp_supervised(void);
/* Hands a JSON line to the parent, which writes it when the child has ended. */
fk_status fkp_supervised_line(const char *line);
/* What is known of the record already: the parent completes it when the child cannot. */
void fkp_supervised_head(const json_t *record);
/* The command has come to its end by itself. */
void fkp_supervised_end(int code);

/* How long one call of a candidate may take: $FK_BENCH_TIMEOUT_SEC, else so long. */
double fkp_call_timeout_s(double usual_s);

#endif
