/* SPDX-License-Identifier: Apache-2.0 */
/* Progress on stderr: a bar with the time left on a terminal, nothing elsewhere. One bar at a time. */
#ifndef FK_CLI_PROGRESS_H
#define FK_CLI_PROGRESS_H

#include "cli/command.h"

typedef struct fkp_progress {
    const char *label;
    double started, drawn; /* seconds of the monotonic clock */
    int64_t total, done;
    bool visible;
} fkp_progress;

void fkp_progress_begin(const fkp_cli *cli, fkp_progress *progress, const char *label, int64_t total);
/* `done` of the total are done; `note` says what comes now (may be NULL). Cheap: redraws ten times a second at most. */
void fkp_progress_update(fkp_progress *progress, int64_t done, const char *note);
/* Takes the bar away. */
void fkp_progress_end(fkp_progress *progress);
/* Clears the visible bar, if any, so that a line can be written; the next update draws it again. */
void fkp_progress_hide(void);

#endif
