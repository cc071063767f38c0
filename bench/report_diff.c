/* SPDX-License-Identifier: Apache-2.0 */
/* Two result files against each other: the same cases, their candidate times before and after. */
#include <math.h>
#include <string.h>

#include "bench/report_data.h"

typedef struct comparison {
    const fk_report *before, *after;
} comparison;

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    return strcmp(fkp_record_text(a, key), fkp_record_text(b, key)) == 0;
}

static bool same_case(const json_t *a, const json_t *b)
{
    const json_t *shapes = json_object_get(a, "shapes"), *others = json_object_get(b, "shapes");
    return same_text(a, b, "op") && same_text(a, b, "case") && same_text(a, b, "dtype") &&
           (json_equal(shapes, others) || (!shapes && !others));
}

/* The case of `report` that is the same work as `record`: by the same candidate if there is one, else by another; NULL when
 * there is none. */
static const json_t *find_same(const fk_report *report, const json_t *record)
{
    const json_t *other_candidate = NULL;
    for (int g = 0; g < report->num_groups; g++)
        for (int i = 0; i < report->groups[g].num_cases; i++) {
            const json_t *other = report->groups[g].cases[i];
            if (!same_case(record, other)) continue;
            if (same_text(record, other, "candidate")) return other;
            if (!other_candidate) other_candidate = other;
        }
    return other_candidate;
}

static double ratio_of(const json_t *before, const json_t *after)
{
    if (!before || fkp_record_outcome(before) != FKP_PASSED || fkp_record_outcome(after) != FKP_PASSED) return NAN;
    return fkp_record_number(before, "candidate_ms") / fkp_record_number(after, "candidate_ms");
}

static void write_side(FILE *out, const json_t *record)
{
    fputs("<td>", out);
    const char *verdict = record ? fkp_record_text(record, "verdict") : "";
    if (record) fkp_html_badge(out, fkp_record_kind(record), *verdict ? verdict : fkp_record_text(record, "status"));
    else fkp_html_badge(out, "open", "not there");
    fputs("</td><td class=\"n\">", out);
    fkp_html_ms(out, record ? fkp_record_number(record, "candidate_ms") : NAN);
    fputs("</td>", out);
}

static void write_row(FILE *out, const fkp_axis *axis, const json_t *before, const json_t *after)
{
    const json_t *named = after ? after : before;
    double ratio = after ? ratio_of(before, after) : NAN;
    fputs("<tr><td class=\"name\">", out);
    fkp_html_text(out, fkp_record_text(named, "op"));
    if (*fkp_record_text(named, "candidate")) {
        fputs("<br><span class=\"soft code\">", out);
        fkp_html_text(out, fkp_record_text(named, "candidate"));
        fputs("</span>", out);
    }
    fputs("</td><td class=\"shapes\">", out);
    const char *shapes = fkp_record_text(named, "shapes");
    fkp_html_shapes(out, *shapes ? shapes : fkp_record_text(named, "case"));
    fputs("</td>", out);
    write_side(out, before);
    write_side(out, after);
    fputs("<td class=\"n\">", out);
    fkp_html_speedup(out, ratio);
    fputs("</td><td class=\"plot-cell\">", out);
    if (ratio > 0) fkp_plot_whisker(out, axis, ratio, NAN, NAN, ratio > 1.03 ? "good" : ratio < 0.97 ? "slow" : "even");
    fputs("</td></tr>\n", out);
}

/* Calls `row` for every case of either side. */
static void write_rows(FILE *out, const comparison *c, fkp_axis *axis, bool measure)
{
    for (int g = 0; g < c->after->num_groups; g++)
        for (int i = 0; i < c->after->groups[g].num_cases; i++) {
            const json_t *after = c->after->groups[g].cases[i], *before = find_same(c->before, after);
            if (measure) fkp_axis_offer(axis, ratio_of(before, after));
            else write_row(out, axis, before, after);
        }
    for (int g = 0; g < c->before->num_groups && !measure; g++)
        for (int i = 0; i < c->before->groups[g].num_cases; i++)
            if (!find_same(c->after, c->before->groups[g].cases[i])) write_row(out, axis, c->before->groups[g].cases[i], NULL);
}

static void write_page(FILE *out, const void *user)
{
    const comparison *c = user;
    fkp_axis axis;
    char subtitle[512];
    snprintf(subtitle, sizeof subtitle, "%.200s, then %.200s", c->before->runs[0].path, c->after->runs[0].path);
    fkp_html_begin(out, "FastKernels: what changed", subtitle);
    fkp_axis_start(&axis);
    write_rows(out, c, &axis, true);
    fkp_axis_finish(&axis);
    fputs("<h2>Cases</h2>\n<div class=\"card\"><div class=\"scroll\"><table>\n<tr><th>Operator</th><th>Shapes</th><th>Before</th>"
          "<th class=\"n\">Time</th><th>After</th><th class=\"n\">Time</th><th class=\"n\">Factor</th><th class=\"plot-cell\">",
          out);
    fkp_plot_scale(out, &axis);
    fputs("</th></tr>\n", out);
    write_rows(out, c, &axis, false);
    fputs("</table></div></div>\n", out);
    fkp_html_environments(out, c->before);
    fkp_html_environments(out, c->after);
    fkp_html_end(out);
}

fk_status fk_report_write_diff(const fk_report *before, const fk_report *after, const char *path)
{
    return fkp_html_file(path, write_page, &(comparison){before, after});
}
