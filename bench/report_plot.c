/* SPDX-License-Identifier: Apache-2.0 */
/* Small plots as inline SVG, without scripts: colours come from the page's style, positions are percentages. */
#include <math.h>
#include <string.h>

#include "bench/report_data.h"

#define LARGEST 256.0 /* speedups beyond are drawn at the edge */
#define EDGE 2.0      /* percent left free on both sides */

void fkp_axis_start(fkp_axis *axis)
{
    *axis = (fkp_axis){.low = -log(1.1), .high = log(1.1)};
}

void fkp_axis_offer(fkp_axis *axis, double speedup)
{
    if (!(speedup > 0)) return;
    double l = log(fmin(fmax(speedup, 1 / LARGEST), LARGEST));
    axis->low = fmin(axis->low, l);
    axis->high = fmax(axis->high, l);
}

#define TICK_DISTANCE 0.15 /* of the axis, so that labels stay apart in a narrow column */

/* Ticks: the roundest numbers first, each only where no other is near. */
void fkp_axis_finish(fkp_axis *axis)
{
    static const double roundest_first[] = {1,   2,   0.5, 4,   0.25, 8,    0.125, 16,  1.0 / 16, 32,  1.0 / 32, 64,  1.0 / 64,
                                            128, 1.0 / 128, 256, 1.0 / 256, 1.5, 0.75, 1.2, 0.8, 1.1, 0.9, 3, 1.05, 0.95};
    double span = axis->high - axis->low;
    axis->low -= 0.06 * span;
    axis->high += 0.06 * span;
    span = axis->high - axis->low;
    for (size_t i = 0; i < sizeof roundest_first / sizeof roundest_first[0] && axis->num_ticks < FKP_MAX_TICKS; i++) {
        double at = log(roundest_first[i]);
        bool fits = at >= axis->low && at <= axis->high;
        for (int k = 0; k < axis->num_ticks; k++) fits = fits && fabs(at - log(axis->ticks[k])) >= TICK_DISTANCE * span;
        if (fits) axis->ticks[axis->num_ticks++] = roundest_first[i];
    }
}

static double position(const fkp_axis *axis, double speedup)
{
    double share = (log(fmax(speedup, 1e-9)) - axis->low) / (axis->high - axis->low);
    return EDGE + (100 - 2 * EDGE) * fmin(fmax(share, 0), 1);
}

void fkp_plot_scale(FILE *out, const fkp_axis *axis)
{
    fputs("<svg class=\"plot scale\" aria-hidden=\"true\">", out);
    for (int i = 0; i < axis->num_ticks; i++) {
        double tick = axis->ticks[i], x = position(axis, tick);
        if (tick < 0.2) fprintf(out, "<text x=\"%.2f%%\" y=\"13\">1/%.0f×</text>", x, 1 / tick); /* shorter than 0.0156 */
        else fprintf(out, "<text x=\"%.2f%%\" y=\"13\">%.3g×</text>", x, tick);
    }
    fputs("</svg>", out);
}

static void begin_plot(FILE *out, const fkp_axis *axis, const char *format, double value, double low, double high)
{
    fputs("<svg class=\"plot\" role=\"img\" aria-label=\"", out);
    fprintf(out, format, value, low, high);
    fputs("\">", out);
    for (int i = 0; i < axis->num_ticks; i++) {
        double x = position(axis, axis->ticks[i]);
        fprintf(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>", axis->ticks[i] == 1 ? "one" : "grid",
                x, x);
    }
}

void fkp_plot_whisker(FILE *out, const fkp_axis *axis, double speedup, double low, double high, const char *kind)
{
    bool interval = low > 0 && high > 0;
    begin_plot(out, axis, interval ? "speedup %.4g, interval %.4g to %.4g" : "speedup %.4g", speedup, low, high);
    if (interval) {
        double a = position(axis, low), b = position(axis, high);
        fprintf(out, "<g class=\"whisker %s\"><line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"50%%\" y2=\"50%%\"/>", kind, a, b);
        fprintf(out, "<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"32%%\" y2=\"68%%\"/>", a, a);
        fprintf(out, "<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"32%%\" y2=\"68%%\"/></g>", b, b);
    }
    fprintf(out, "<circle class=\"dot %s\" cx=\"%.2f%%\" cy=\"50%%\" r=\"4.5\"/></svg>", kind, position(axis, speedup));
}

void fkp_plot_group(FILE *out, const fkp_axis *axis, const fkp_group *group)
{
    double mean = fkp_geomean(group->log_speedups, group->timed);
    begin_plot(out, axis, "geometric mean %.4g", mean, 0, 0);
    for (int i = 0; i < group->num_cases; i++) {
        double speedup = fkp_record_number(group->cases[i], "speedup");
        if (fkp_record_outcome(group->cases[i]) != FKP_PASSED || !(speedup > 0)) continue;
        fprintf(out, "<circle class=\"dot %s%s\" cx=\"%.2f%%\" cy=\"50%%\" r=\"4\"/>", group->timed > 1 ? "faint " : "",
                fkp_record_kind(group->cases[i]), position(axis, speedup));
    }
    if (group->timed > 1) {
        double x = position(axis, mean);
        fprintf(out, "<line class=\"mean\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"14%%\" y2=\"86%%\"/>", x, x);
    }
    fputs("</svg>", out);
}

void fkp_plot_fraction(FILE *out, double fraction)
{
    if (!isfinite(fraction)) {
        fputs("<span class=\"none\">–</span>", out);
        return;
    }
    double shown = fmin(fmax(fraction, 0), 1);
    fprintf(out, "<span class=\"fraction\"><span class=\"track\"><span class=\"fill\" style=\"width:%.1f%%\"></span></span>%.0f%%</span>",
            100 * shown, 100 * fraction);
}

const char *fkp_record_kind(const json_t *record)
{
    fkp_outcome outcome = fkp_record_outcome(record);
    const char *verdict = fkp_record_text(record, "verdict");
    if (outcome != FKP_PASSED) return outcome == FKP_FAILED ? "bad" : "open";
    if (strcmp(verdict, "FASTER") == 0) return "good";
    if (strcmp(verdict, "SLOWER") == 0) return "slow";
    return strcmp(verdict, "SAME") == 0 ? "even" : "open";
}
