/* SPDX-License-Identifier: Apache-2.0 */
/* Result files (JSON lines of bench and eval) gathered for one page. */
#ifndef FK_BENCH_REPORT_H
#define FK_BENCH_REPORT_H

#include <fk/status.h>

typedef struct fk_report fk_report;

fk_status fk_report_create(fk_report **out);
void fk_report_destroy(fk_report *report);
/* Adds a result file: JSON lines, one object, or an array of objects. FK_ERROR_INVALID names file and line of what is no
 * result, and a file that holds no bench or eval record. */
fk_status fk_report_add(fk_report *report, const char *path);
/* Writes the page; it appears whole or not at all. */
fk_status fk_report_write_html(const fk_report *report, const char *path);
/* Writes a page that sets two result files against each other, case by case. */
fk_status fk_report_write_diff(const fk_report *before, const fk_report *after, const char *path);
int fk_report_cases(const fk_report *report);
int fk_report_evals(const fk_report *report);

#endif
