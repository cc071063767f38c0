/* SPDX-License-Identifier: Apache-2.0 */
/* The page: summary, one card for each operator and candidate, whole models, environment. Everything from a record goes
 * through fkp_html_text. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/report_data.h"

void fkp_html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

void fkp_html_shapes(FILE *out, const char *text)
{
    int depth = 0;
    for (; *text; text++) {
        char one[2] = {*text, 0};
        depth += *text == '[' ? 1 : *text == ']' && depth > 0 ? -1 : 0;
        size_t word = *text == ' ' ? strcspn(text + 1, "[ ") : 0; /* what follows is a dtype when a bracket ends it */
        bool before_dtype = depth == 0 && word > 0 && text[1 + word] == '[';
        if (*text == ' ' && (depth > 0 || before_dtype)) fputs("&nbsp;", out);
        else fkp_html_text(out, one);
    }
}

void fkp_html_speedup(FILE *out, double speedup)
{
    if (!isfinite(speedup)) fputs("<span class=\"none\">–</span>", out);
    else fprintf(out, speedup < 9.995 ? "%.2f×" : speedup < 99.95 ? "%.1f×" : "%.0f×", speedup);
}

void fkp_html_ms(FILE *out, double ms)
{
    static const struct {
        double ms;
        const char *unit;
    } units[] = {{1000, "s"}, {1, "ms"}, {1e-3, "µs"}, {1e-6, "ns"}};
    if (!isfinite(ms) || ms < 0) {
        fputs("<span class=\"none\">–</span>", out);
        return;
    }
    size_t u = 0;
    while (u < 3 && ms < units[u].ms) u++;
    double value = ms / units[u].ms;
    fprintf(out, value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[u].unit);
}

void fkp_html_badge(FILE *out, const char *kind, const char *text)
{
    fprintf(out, "<span class=\"badge %s\">", kind);
    fkp_html_text(out, text);
    fputs("</span>", out);
}

void fkp_html_begin(FILE *out, const char *title, const char *subtitle)
{
    fprintf(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    fkp_html_text(out, title);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", (const char *)fkp_report_style);
    fkp_html_text(out, title);
    fputs("</h1>\n<p class=\"lead\">", out);
    fkp_html_text(out, subtitle);
    fputs("</p>\n", out);
}

void fkp_html_end(FILE *out)
{
    char when[64];
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    fprintf(out, "<footer>Written by <code>fastkernels report</code>, %s. Whiskers are confidence intervals of the speedup; "
                 "the dashed line is 1×. Speedup is baseline time over candidate time.</footer>\n</main>\n</body>\n</html>\n",
            when);
}

fk_status fkp_html_file(const char *path, void (*write)(FILE *out, const void *user), const void *user)
{
    char *partial;
    if (asprintf(&partial, "%s.partial", path) < 0) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    fk_status status = FK_OK;
    FILE *out = fopen(partial, "w");
    if (!out) {
        status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    } else {
        errno = 0;
        write(out, user);
        bool failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed || rename(partial, path) != 0) {
            status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno ? errno : EIO));
            unlink(partial);
        }
    }
    free(partial);
    return status;
}

static void tile(FILE *out, const char *kind, const char *label, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void tile(FILE *out, const char *kind, const char *label, const char *format, ...)
{
    va_list args;
    fprintf(out, "<div class=\"tile %s\"><b>", kind);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fprintf(out, "</b><span>%s</span></div>\n", label);
}

/* Verdicts of all cases as one bar; the parts in the order of `kinds`. */
static const char *const kinds[] = {"good", "even", "open", "slow", "bad"};
static const char *const kind_labels[] = {"faster", "same", "undecided or skipped", "slower", "failed"};
#define NUM_KINDS 5

static void write_bar(FILE *out, const int counts[NUM_KINDS])
{
    int total = 0;
    for (int k = 0; k < NUM_KINDS; k++) total += counts[k];
    fputs("<div class=\"bar\" role=\"img\" aria-label=\"verdicts\">", out);
    for (int k = 0; k < NUM_KINDS; k++)
        if (counts[k]) fprintf(out, "<i class=\"%s\" style=\"width:%.3f%%\"></i>", kinds[k], 100.0 * counts[k] / total);
    fputs("</div>\n<div class=\"key\">", out);
    for (int k = 0; k < NUM_KINDS; k++)
        if (counts[k]) fprintf(out, "<span><i class=\"%s\"></i>%d %s</span>", kinds[k], counts[k], kind_labels[k]);
    fputs("</div>\n", out);
}

static void write_summary(FILE *out, const fk_report *report)
{
    int planned = 0, count[FKP_OUTCOMES] = {0}, timed = 0, by_kind[NUM_KINDS] = {0}, same = 0;
    double logs = 0;
    for (int i = 0; i < report->num_runs; i++) {
        const fkp_run *run = &report->runs[i];
        planned += run->planned;
        for (int o = 0; o < FKP_OUTCOMES; o++) count[o] += run->count[o];
        logs += run->log_speedups;
        timed += run->timed;
    }
    for (int g = 0; g < report->num_groups; g++)
        for (int i = 0; i < report->groups[g].num_cases; i++)
            for (int k = 0; k < NUM_KINDS; k++)
                by_kind[k] += strcmp(fkp_record_kind(report->groups[g].cases[i]), kinds[k]) == 0;
    for (int i = 0; i < report->num_evals; i++) same += fkp_record_outcome(report->evals[i].record) == FKP_PASSED;
    fputs("<div class=\"tiles\">\n", out);
    if (planned > 0) {
        tile(out, "", "cases planned", "%d", planned);
        tile(out, count[FKP_PASSED] ? "good" : "", "passed", "%d", count[FKP_PASSED]);
        tile(out, count[FKP_FAILED] ? "bad" : "", "failed", "%d", count[FKP_FAILED]);
        tile(out, "", "skipped or not run", "%d", planned - count[FKP_PASSED] - count[FKP_FAILED]);
        double mean = fkp_geomean(logs, timed);
        if (timed) tile(out, mean >= 1 ? "good" : "slow", "geometric mean of the passed", "%.2f×", mean);
        else tile(out, "", "geometric mean of the passed", "–");
    }
    if (report->num_evals)
        tile(out, same == report->num_evals ? "good" : "bad", "whole models passed", "%d of %d", same, report->num_evals);
    fputs("</div>\n", out);
    if (planned > 0) write_bar(out, by_kind);
}

/* Says which operator, and by which candidate where the records name one. */
static void write_group_name(FILE *out, const fkp_group *group)
{
    fkp_html_text(out, group->op);
    if (*group->candidate) {
        fputs(" <span class=\"soft code\">", out);
        fkp_html_text(out, group->candidate);
        fputs("</span>", out);
    }
}

static void write_overview(FILE *out, const fk_report *report, const fkp_axis *axis)
{
    fputs("<h2>Operators</h2>\n<div class=\"card\"><div class=\"scroll\"><table>\n<tr><th>Level</th><th>Operator</th>"
          "<th class=\"n\">Passed</th><th class=\"n\">Mean</th><th class=\"plot-cell\">",
          out);
    fkp_plot_scale(out, axis);
    fputs("</th></tr>\n", out);
    for (int i = 0; i < report->num_groups; i++) {
        const fkp_group *g = &report->groups[i];
        fprintf(out, "<tr><td class=\"soft\">L%d</td><td class=\"name\"><a href=\"#g%d\">", g->level, i);
        write_group_name(out, g);
        fputs("</a></td><td class=\"n\">", out);
        char text[48];
        snprintf(text, sizeof text, "%d of %d", g->count[FKP_PASSED], g->num_cases);
        fkp_html_badge(out, g->count[FKP_FAILED] ? "bad" : g->count[FKP_PASSED] == g->num_cases ? "good" : "open", text);
        fputs("</td><td class=\"n\">", out);
        fkp_html_speedup(out, fkp_geomean(g->log_speedups, g->timed));
        fputs("</td><td class=\"plot-cell\">", out);
        if (g->timed) fkp_plot_group(out, axis, g);
        else fkp_html_badge(out, fkp_record_kind(g->cases[0]), fkp_record_text(g->cases[0], "status"));
        fputs("</td></tr>\n", out);
    }
    fputs("</table></div></div>\n", out);
}

/* A value of a mismatch as it stands in the record. */
static void write_value(FILE *out, const json_t *value)
{
    if (json_is_real(value)) {
        fprintf(out, "%.9g", json_real_value(value));
    } else if (json_is_string(value)) {
        fkp_html_text(out, json_string_value(value));
    } else if (!value || json_is_null(value)) {
        fputs("not finite", out);
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        fkp_html_text(out, text ? text : "?");
        free(text);
    }
}

static void write_mismatches(FILE *out, const json_t *list)
{
    size_t i;
    json_t *m;
    fprintf(out, "<details><summary>first %zu mismatch%s</summary><table><tr><th>Tensor</th><th>Index</th><th class=\"n\">Expected</th>"
                 "<th class=\"n\">Found</th></tr>\n",
            json_array_size(list), json_array_size(list) == 1 ? "" : "es");
    json_array_foreach(list, i, m) {
        fputs("<tr><td>", out);
        fkp_html_text(out, fkp_record_text(m, "tensor"));
        fputs("</td><td class=\"code\">", out);
        write_value(out, json_object_get(m, "index"));
        fputs("</td><td class=\"n code\">", out);
        write_value(out, json_object_get(m, "expected"));
        fputs("</td><td class=\"n code\">", out);
        if (json_is_true(json_object_get(m, "unwritten"))) fputs("not written", out);
        else write_value(out, json_object_get(m, "found"));
        fputs("</td></tr>\n", out);
    }
    fputs("</table></details>", out);
}

static void write_error(FILE *out, const json_t *record)
{
    double error = fkp_record_number(record, "max_abs_error"), matched = fkp_record_number(record, "matched_ratio");
    if (!isfinite(error)) fputs("<span class=\"none\">–</span>", out);
    else if (error == 0) fputs("0", out);
    else fprintf(out, "%.1e", error);
    if (isfinite(matched) && matched < 1) fprintf(out, "<br><span class=\"soft\">%.4g%% match</span>", 100 * matched);
}

/* Times, speedup and roofline of one case: five cells. */
static void write_times(FILE *out, const fkp_axis *axis, const json_t *record)
{
    bool passed = fkp_record_outcome(record) == FKP_PASSED;
    double speedup = passed ? fkp_record_number(record, "speedup") : NAN;
    fputs("<td class=\"n\">", out);
    fkp_html_ms(out, fkp_record_number(record, "baseline_ms"));
    fputs("</td><td class=\"n\">", out);
    fkp_html_ms(out, fkp_record_number(record, "candidate_ms"));
    fputs("</td><td class=\"n\">", out);
    fkp_html_speedup(out, speedup);
    fputs("</td><td class=\"plot-cell\">", out);
    if (speedup > 0)
        fkp_plot_whisker(out, axis, speedup, fkp_record_number(record, "ci_low"), fkp_record_number(record, "ci_high"),
                         fkp_record_kind(record));
    fputs("</td><td>", out);
    fkp_plot_fraction(out, fkp_record_number(record, "roofline_fraction"));
    fputs("</td>", out);
}

/* `timed`: the table has columns for times. */
static void write_case(FILE *out, const fkp_axis *axis, const json_t *record, bool timed)
{
    fkp_outcome outcome = fkp_record_outcome(record);
    const char *status = fkp_record_text(record, "status"), *verdict = fkp_record_text(record, "verdict"),
               *detail = fkp_record_text(record, "detail");
    const json_t *mismatches = json_object_get(record, "mismatches"), *shapes = json_object_get(record, "shapes");
    double count = fkp_record_number(record, "count");
    fputs("<tr><td>", out);
    fkp_html_badge(out, fkp_record_kind(record), outcome == FKP_PASSED && *verdict ? verdict : status);
    fputs("</td><td class=\"shapes\">", out);
    if (json_is_string(shapes)) fkp_html_shapes(out, json_string_value(shapes));
    else if (shapes && !json_is_null(shapes)) write_value(out, shapes);
    else fkp_html_text(out, fkp_record_text(record, "case"));
    if (count > 1) fprintf(out, " <span class=\"soft\">×%.0f</span>", count);
    fputs("</td><td>", out);
    fkp_html_text(out, fkp_record_text(record, "dtype"));
    fputs("</td>", out);
    if (timed) write_times(out, axis, record);
    fputs("<td class=\"n\">", out);
    write_error(out, record);
    fputs("</td></tr>\n", out);
    bool listed = json_array_size(mismatches) > 0;
    if (!*detail && !listed) return;
    fprintf(out, "<tr class=\"more\"><td></td><td colspan=\"%d\">", timed ? 8 : 3);
    if (*detail) {
        fprintf(out, "<pre class=\"code%s\">", outcome == FKP_FAILED ? " detail" : "");
        fkp_html_text(out, detail);
        fputs("</pre>", out);
    }
    if (listed) write_mismatches(out, mismatches);
    fputs("</td></tr>\n", out);
}

static void write_group(FILE *out, const fk_report *report, int index, const fkp_axis *axis)
{
    const fkp_group *g = &report->groups[index];
    fprintf(out, "<section class=\"card\" id=\"g%d\"><header><h3>", index);
    write_group_name(out, g);
    fprintf(out, "</h3><span class=\"soft\">L%d on ", g->level);
    fkp_html_text(out, *g->device ? g->device : "an unnamed device");
    if (report->num_runs > 1) {
        fputs(", ", out);
        fkp_html_text(out, report->runs[g->run].path);
    }
    fprintf(out, "</span><span class=\"grow\"></span><span>%d of %d passed</span>", g->count[FKP_PASSED], g->num_cases);
    if (g->timed) {
        fputs("<b>", out);
        fkp_html_speedup(out, fkp_geomean(g->log_speedups, g->timed));
        fputs("</b>", out);
    }
    fputs("</header><div class=\"scroll\"><table>\n<tr><th>Verdict</th><th>Shapes</th><th>Dtype</th>", out);
    if (g->timed) {
        fputs("<th class=\"n\">Baseline</th><th class=\"n\">Candidate</th><th class=\"n\">Speedup</th><th class=\"plot-cell\">", out);
        fkp_plot_scale(out, axis);
        fputs("</th><th>Of the roofline</th>", out);
    }
    fputs("<th class=\"n\">Largest error</th></tr>\n", out);
    for (int i = 0; i < g->num_cases; i++) write_case(out, axis, g->cases[i], g->timed > 0);
    fputs("</table></div></section>\n", out);
}

static void write_runs(FILE *out, const fk_report *report)
{
    if (report->num_runs < 2) return;
    fputs("<h2>Runs</h2>\n<div class=\"card\"><div class=\"scroll\"><table>\n<tr><th>File</th><th>Device</th><th class=\"n\">Planned</th>"
          "<th class=\"n\">Passed</th><th class=\"n\">Failed</th><th class=\"n\">Mean</th><th>Command</th></tr>\n",
          out);
    for (int i = 0; i < report->num_runs; i++) {
        const fkp_run *run = &report->runs[i];
        fputs("<tr><td class=\"name\">", out);
        fkp_html_text(out, run->path);
        fputs("</td><td>", out);
        fkp_html_text(out, fkp_record_text(run->header, "device"));
        fprintf(out, "</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">",
                run->planned + run->evals, run->count[FKP_PASSED] + run->eval_count[FKP_PASSED],
                run->count[FKP_FAILED] + run->eval_count[FKP_FAILED]);
        bool of_evals = run->cases == 0; /* a file holds one or the other */
        fkp_html_speedup(out, fkp_geomean(of_evals ? run->log_factors : run->log_speedups, of_evals ? run->eval_timed : run->timed));
        fputs("</td><td class=\"shapes code\">", out);
        fkp_html_text(out, fkp_record_text(run->header, "command"));
        fputs("</td></tr>\n", out);
    }
    fputs("</table></div></div>\n", out);
}

static void write_page(FILE *out, const void *user)
{
    const fk_report *report = user;
    const json_t *header = report->num_runs ? report->runs[0].header : NULL;
    const json_t *device = json_object_get(json_object_get(header, "environment"), "device");
    const char *name = fkp_record_text(device, "name");
    char subtitle[512];
    fkp_axis axis;
    fkp_axis_start(&axis);
    for (int g = 0; g < report->num_groups; g++)
        for (int i = 0; i < report->groups[g].num_cases; i++) {
            const json_t *record = report->groups[g].cases[i];
            if (fkp_record_outcome(record) != FKP_PASSED) continue;
            fkp_axis_offer(&axis, fkp_record_number(record, "speedup"));
            fkp_axis_offer(&axis, fkp_record_number(record, "ci_low"));
            fkp_axis_offer(&axis, fkp_record_number(record, "ci_high"));
        }
    fkp_axis_finish(&axis);
    snprintf(subtitle, sizeof subtitle, "%s%s%s, commit %s", fkp_record_text(header, "device"), *name ? ": " : "", name,
             fkp_record_text(header, "commit"));
    fkp_html_begin(out, "FastKernels report", subtitle);
    write_summary(out, report);
    fkp_html_evals(out, report);
    if (report->num_groups) write_overview(out, report, &axis);
    write_runs(out, report);
    if (report->num_groups) fputs("<h2>Cases</h2>\n", out);
    for (int i = 0; i < report->num_groups; i++) write_group(out, report, i, &axis);
    fkp_html_environments(out, report);
    fkp_html_end(out);
}

fk_status fk_report_write_html(const fk_report *report, const char *path)
{
    return fkp_html_file(path, write_page, report);
}
