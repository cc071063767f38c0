/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that leaves a command: text for people on stdout, JSON lines for scripts, logs on stderr. With --json stdout
 * holds JSON and nothing else; with --json=FILE the text stays on stdout and FILE gets the JSON. */
#ifndef FK_CLI_OUTPUT_H
#define FK_CLI_OUTPUT_H

#include <jansson.h>

#include "cli/command.h"

/* Text for people; nothing when stdout belongs to JSON. */
void fkp_print(fkp_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sends what was printed on its way. */
void fkp_flush(fkp_cli *cli);
/* Whether fkp_print prints: skip work on tables when it does not. */
bool fkp_prints(const fkp_cli *cli);

/* Logs on stderr: info unless --quiet, debug only with --verbose, warnings always. */
void fkp_info(const fkp_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fkp_debug(const fkp_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fkp_warn(const fkp_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Escape sequences for stdout, "" when it has no colours. */
typedef enum fkp_style { FKP_PLAIN, FKP_BOLD, FKP_DIM, FKP_RED, FKP_GREEN, FKP_YELLOW, FKP_CYAN } fkp_style;
const char *fkp_style_on(const fkp_cli *cli, fkp_style style);
const char *fkp_style_off(const fkp_cli *cli, fkp_style style);

/* A result object with schema ("fastkernels/<kind>/1"), commit, version, device, environment and command. */
json_t *fkp_result(fkp_cli *cli, const char *kind);
/* The same, complete even without --json: for commands that keep their results in a file. */
json_t *fkp_result_full(fkp_cli *cli, const char *kind);
/* Writes the object as one line when there is --json, flushed; takes the reference either way. */
void fkp_emit(fkp_cli *cli, json_t *result);
/* A number, null when it is not finite; text with what is no UTF-8 replaced; text or null. */
json_t *fkp_json_real(double value);
json_t *fkp_json_text(const char *text);

/* Called by main around the command. Closing reports a full disk or a failed write. */
fk_status fkp_output_open(fkp_cli *cli);
fk_status fkp_output_close(fkp_cli *cli);

/* Device and environment as JSON (cli/environment.c). */
json_t *fkp_environment(const fkp_cli *cli, const fk_device *device);
/* Version and commit that were compiled in. */
extern const char fkp_version[], fkp_commit[];

#endif
