/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of `doctor` share. */
#ifndef FK_CLI_DOCTOR_H
#define FK_CLI_DOCTOR_H

#include <stdarg.h>

#include "cli/output.h"

typedef struct fkp_checks {
    fkp_cli *cli;
    json_t *list;
    const char *group; /* of the last check */
} fkp_checks;

/* Prints and records one check. `needed_for` may be NULL. */
void fkp_check_add(fkp_checks *checks, const char *group, const char *name, bool ok, const char *needed_for, const char *format,
                   ...) __attribute__((format(printf, 6, 7)));

void fkp_doctor_check_devices(fkp_checks *checks);
void fkp_doctor_check_tools(fkp_checks *checks);
void fkp_doctor_check_files(fkp_checks *checks);
void fkp_doctor_check_isolation(fkp_checks *checks);

#endif
