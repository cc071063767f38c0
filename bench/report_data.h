/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages are written from: records of bench grouped by candidate, records of eval, and where they come from. */
#ifndef FK_BENCH_REPORT_DATA_H
#define FK_BENCH_REPORT_DATA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/report.h"

/* How a case ended, as far as colours and sums go. */
typedef enum fkp_outcome { FKP_PASSED, FKP_FAILED, FKP_SKIPPED, FKP_OUTCOMES } fkp_outcome;

typedef struct fkp_run {
    char *path;
    json_t *header; /* a record of the file, for device, environment and command */
    int cases, evals;
    int eval_count[FKP_OUTCOMES];
    double log_factors; /* sum over the passed evals that have a factor */
    int eval_timed;
    int planned;    /* from the file's summary; the number of cases where it has none */
    int count[FKP_OUTCOMES];
    double log_speedups; /* sum over `timed` passed cases */
    int timed;
} fkp_run;

/* Cases of one operator by one candidate on one device in one file. */
typedef struct fkp_group {
    const char *op, *candidate, *device; /* candidate "" when the records name none */
    int run, level;
    json_t **cases;
    int num_cases;
    int count[FKP_OUTCOMES];
    double log_speedups;
    int timed;
} fkp_group;

struct fk_report {
    fkp_run *runs;
    int num_runs;
    fkp_group *groups;
    int num_groups;
    struct fkp_eval {
        json_t *record;
        int run;
    } *evals;
    int num_evals;
    json_t *records; /* owns everything */
};

/* Fields that may be absent: "" and NaN then. */
const char *fkp_record_text(const json_t *record, const char *key);
double fkp_record_number(const json_t *record, const char *key);
fkp_outcome fkp_record_outcome(const json_t *record);
/* exp(sum / count), NaN for nothing. */
double fkp_geomean(double log_sum, int count);

/* --- bench/report_plot.c: the logarithmic axis around 1x, and what stands on it. Positions are percentages, so that a plot
 * is as wide as its place. */
#define FKP_MAX_TICKS 8

typedef struct fkp_axis {
    double low, high; /* ends, logarithms */
    double ticks[FKP_MAX_TICKS];
    int num_ticks;
} fkp_axis;

/* An axis that holds all values offered (NaN and what is not positive are passed over). */
void fkp_axis_start(fkp_axis *axis);
void fkp_axis_offer(fkp_axis *axis, double speedup);
void fkp_axis_finish(fkp_axis *axis);
/* Tick labels, for the head of a column of plots. */
void fkp_plot_scale(FILE *out, const fkp_axis *axis);
/* Grid; then dot and whisker of one speedup with its confidence interval. `kind` is a CSS class: good, bad, even, open. */
void fkp_plot_whisker(FILE *out, const fkp_axis *axis, double speedup, double low, double high, const char *kind);
/* Grid; then a dot for each case of the group and a bar at its geometric mean. */
void fkp_plot_group(FILE *out, const fkp_axis *axis, const fkp_group *group);
/* A bar from 0 to 1 with its percentage. */
void fkp_plot_fraction(FILE *out, double fraction);
/* CSS class of a case by status and verdict. */
const char *fkp_record_kind(const json_t *record);

/* --- bench/report_html.c */
/* Text with & < > " ' escaped. */
void fkp_html_text(FILE *out, const char *text);
/* Shapes as "input f32[1, 576] weight f32[576]": breaks between tensors only. */
void fkp_html_shapes(FILE *out, const char *text);
/* "1.42×", "–" for NaN. */
void fkp_html_speedup(FILE *out, double speedup);
/* "4.21 µs", "12.3 ms", "1.20 s". */
void fkp_html_ms(FILE *out, double ms);
void fkp_html_begin(FILE *out, const char *title, const char *subtitle);
void fkp_html_end(FILE *out);
/* A badge with the text, coloured by kind. */
void fkp_html_badge(FILE *out, const char *kind, const char *text);
/* Opens "<path>.partial", calls write, and renames; removes the partial file on failure. */
fk_status fkp_html_file(const char *path, void (*write)(FILE *out, const void *user), const void *user);
/* The sections that eval records and environments make. */
void fkp_html_evals(FILE *out, const fk_report *report);
void fkp_html_environments(FILE *out, const fk_report *report);

/* --- bench/report.css, compiled in */
extern const unsigned char fkp_report_style[];

#endif
