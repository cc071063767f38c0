/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C sets a flag that long loops look at between cases, so that finished work is on disk. A second one ends at once. */
#ifndef FK_CLI_INTERRUPT_H
#define FK_CLI_INTERRUPT_H

#include <fk/status.h>

#include <stdbool.h>

/* Installs the handlers of SIGINT and SIGTERM and ignores SIGPIPE; once, by main. */
void fkp_interrupt_install(void);
bool fkp_interrupted(void);
/* FK_ERROR_INTERRUPTED (message "interrupted") once Ctrl-C was pressed, else FK_OK. */
fk_status fkp_interrupt_check(void);

#endif
