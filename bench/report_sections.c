/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of the report that eval records and environments make. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report_data.h"

/* "12.3 tok/s" and the like, one line of a definition list, when the field is there. */
static void rate_line(FILE *out, const json_t *record, const char *key, const char *label, const char *unit)
{
    double value = fkp_record_number(record, key);
    if (!isfinite(value)) return;
    fprintf(out, value < 1e4 ? "<dt>%s</dt><dd>%.4g%s</dd>" : "<dt>%s</dt><dd>%.0f%s</dd>", label, value, unit);
}

static void write_side(FILE *out, const char *title, const json_t *side)
{
    if (!json_is_object(side)) return;
    fprintf(out, "<div><h4>%s</h4><dl>", title);
    rate_line(out, side, "tok_s", "Throughput", " tok/s");
    rate_line(out, side, "req_s", "Requests", " /s");
    rate_line(out, side, "ttft_ms", "First token", " ms");
    rate_line(out, side, "tpot_ms", "Each further token", " ms");
    fputs("</dl></div>", out);
}

/* How the outputs compare, as a definition list. */
static void write_outputs(FILE *out, const json_t *record)
{
    const json_t *equal = json_object_get(record, "tokens_equal"), *first = json_object_get(record, "first_divergence"),
                 *metric = json_object_get(record, "metric");
    fputs("<div><h4>Outputs</h4><dl>", out);
    if (json_is_boolean(equal)) {
        fputs("<dt>Tokens</dt><dd>", out);
        fkp_html_badge(out, json_is_true(equal) ? "good" : "bad", json_is_true(equal) ? "all equal" : "differ");
        fputs("</dd>", out);
    } else if (json_is_number(equal)) {
        fprintf(out, "<dt>Equal tokens</dt><dd>%.6g</dd>", json_number_value(equal));
    }
    if (json_is_object(first)) {
        bool tie = json_is_true(json_object_get(first, "near_tie"));
        fprintf(out, "<dt>First difference</dt><dd>request %.0f, step %.0f: %.0f, candidate %.0f</dd><dt>Gap of the logits</dt><dd>%.3g ",
                fkp_record_number(first, "request"), fkp_record_number(first, "step"), fkp_record_number(first, "baseline_id"),
                fkp_record_number(first, "candidate_id"), fkp_record_number(first, "logit_gap"));
        fkp_html_badge(out, tie ? "open" : "bad", tie ? "near tie" : "no tie");
        fputs("</dd>", out);
    }
    if (json_is_object(metric)) {
        fputs("<dt>", out);
        fkp_html_text(out, fkp_record_text(metric, "name"));
        fprintf(out, "</dt><dd>%.6g (threshold %.6g)</dd>", fkp_record_number(metric, "value"), fkp_record_number(metric, "threshold"));
    }
    fputs("</dl></div>", out);
}

static void write_reached(FILE *out, const json_t *reached)
{
    const char *op;
    json_t *calls;
    if (!json_is_object(reached) || json_object_size(reached) == 0) return;
    fputs("<div class=\"chips\"><em>Calls that reached the candidates</em>", out);
    json_object_foreach((json_t *)(uintptr_t)reached, op, calls) {
        fputs("<span>", out);
        fkp_html_text(out, op);
        fprintf(out, " <b>%.0f</b></span>", json_number_value(calls));
    }
    fputs("</div>\n", out);
}

static void write_eval(FILE *out, const json_t *record, const fkp_axis *axis)
{
    const char *status = fkp_record_text(record, "status"), *detail = fkp_record_text(record, "detail");
    fkp_outcome outcome = fkp_record_outcome(record);
    double factor = fkp_record_number(record, "factor"), low = fkp_record_number(record, "ci_low"),
           high = fkp_record_number(record, "ci_high");
    const char *kind = outcome != FKP_PASSED ? "bad" : low > 1 ? "good" : high < 1 ? "slow" : "open";
    fputs("<section class=\"card\"><header><h3>", out);
    fkp_html_text(out, fkp_record_text(record, "model"));
    fputs("</h3><span class=\"soft\">", out);
    fkp_html_text(out, fkp_record_text(record, "workload"));
    fputs("</span><span class=\"grow\"></span>", out);
    fkp_html_badge(out, outcome == FKP_PASSED ? "good" : outcome == FKP_FAILED ? "bad" : "open", status);
    fputs("</header>\n", out);
    if (factor > 0) {
        fputs("<div class=\"factor\"><div><b>", out);
        fkp_html_speedup(out, factor);
        fputs("</b> <span class=\"soft\">", out);
        if (low > 0 && high > 0) fprintf(out, "%.3f to %.3f, ", low, high);
        fputs("baseline time over candidate time</span></div><div class=\"factor-plot\">", out);
        fkp_plot_whisker(out, axis, factor, low, high, kind);
        fkp_plot_scale(out, axis);
        fputs("</div></div>\n", out);
    }
    fputs("<div class=\"pair\">", out);
    write_outputs(out, record);
    write_side(out, "Baseline", json_object_get(record, "baseline"));
    write_side(out, "Candidates", json_object_get(record, "candidate"));
    fputs("</div>\n", out);
    if (*detail) {
        fputs("<div class=\"pair\"><pre class=\"code detail soft\">", out);
        fkp_html_text(out, detail);
        fputs("</pre></div>", out);
    }
    write_reached(out, json_object_get(record, "reached"));
    fputs("</section>\n", out);
}

void fkp_html_evals(FILE *out, const fk_report *report)
{
    fkp_axis axis;
    if (report->num_evals == 0) return;
    fkp_axis_start(&axis);
    for (int i = 0; i < report->num_evals; i++) {
        fkp_axis_offer(&axis, fkp_record_number(report->evals[i].record, "factor"));
        fkp_axis_offer(&axis, fkp_record_number(report->evals[i].record, "ci_low"));
        fkp_axis_offer(&axis, fkp_record_number(report->evals[i].record, "ci_high"));
    }
    fkp_axis_finish(&axis);
    fputs("<h2>Whole models</h2>\n", out);
    for (int i = 0; i < report->num_evals; i++) write_eval(out, report->evals[i].record, &axis);
}

/* Lines for every value of an object; names of nested ones are joined with a space. */
static void write_facts(FILE *out, const json_t *object, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        char name[256];
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? " " : "", key);
        if (json_is_object(value)) {
            write_facts(out, value, name);
            continue;
        }
        if (json_is_null(value)) continue;
        fputs("<dt>", out);
        for (char *p = name; *p; p++)
            if (*p == '_') *p = ' ';
        fkp_html_text(out, name);
        fputs("</dt><dd>", out);
        if (json_is_string(value)) {
            fkp_html_text(out, json_string_value(value));
        } else if (json_is_array(value)) {
            size_t i;
            json_t *item;
            json_array_foreach(value, i, item) {
                if (i) fputs(" ", out);
                if (json_is_string(item)) fkp_html_text(out, json_string_value(item));
                else if (json_is_number(item)) fprintf(out, "%g", json_number_value(item));
            }
        } else {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
            fkp_html_text(out, text ? text : "");
            free(text);
        }
        fputs("</dd>\n", out);
    }
}

/* Whether an earlier run has the same device, commit and environment (clocks aside, which always differ a little). */
static bool described_before(const fk_report *report, int index)
{
    const json_t *own = report->runs[index].header;
    for (int i = 0; i < index; i++) {
        const json_t *other = report->runs[i].header;
        if (strcmp(fkp_record_text(own, "device"), fkp_record_text(other, "device")) != 0 ||
            strcmp(fkp_record_text(own, "commit"), fkp_record_text(other, "commit")) != 0)
            continue;
        json_t *a = json_copy(json_object_get(own, "environment")), *b = json_copy(json_object_get(other, "environment"));
        json_object_del(a, "clocks");
        json_object_del(b, "clocks");
        bool equal = json_equal(a, b) || (!a && !b);
        json_decref(a);
        json_decref(b);
        if (equal) return true;
    }
    return false;
}

void fkp_html_environments(FILE *out, const fk_report *report)
{
    fputs("<h2>Environment</h2>\n", out);
    for (int i = 0; i < report->num_runs; i++) {
        const json_t *header = report->runs[i].header;
        if (described_before(report, i)) continue;
        fputs("<section class=\"card\"><header><h3>", out);
        fkp_html_text(out, fkp_record_text(header, "device"));
        fputs("</h3><span class=\"soft\">", out);
        fkp_html_text(out, report->runs[i].path);
        fputs("</span></header><dl class=\"facts\">\n<dt>command</dt><dd class=\"code\">", out);
        fkp_html_text(out, fkp_record_text(header, "command"));
        fputs("</dd>\n<dt>commit</dt><dd class=\"code\">", out);
        fkp_html_text(out, fkp_record_text(header, "commit"));
        fputs("</dd>\n", out);
        write_facts(out, json_object_get(header, "environment"), "");
        fputs("</dl></section>\n", out);
    }
}
