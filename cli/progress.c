/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing of the progress bar. */
#define _GNU_SOURCE
#include "cli/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 28
#define BESIDE_BAR 40 /* columns for label, counts and time */
#define REDRAW_SECONDS 0.1

static fkp_progress *visible_bar;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void fkp_progress_begin(const fkp_cli *cli, fkp_progress *progress, const char *label, int64_t total)
{
    *progress = (fkp_progress){.label = label, .started = now(), .total = total > 0 ? total : 1};
    progress->visible = !cli->common.quiet && isatty(STDERR_FILENO);
    fkp_progress_update(progress, 0, NULL);
}

static void format_left(char *buf, size_t size, double seconds)
{
    long s = (long)(seconds + 0.5);
    if (s >= 3600) snprintf(buf, size, "%ld:%02ld:%02ld left", s / 3600, s / 60 % 60, s % 60);
    else snprintf(buf, size, "%ld:%02ld left", s / 60, s % 60);
}

void fkp_progress_update(fkp_progress *progress, int64_t done, const char *note)
{
    progress->done = done;
    if (!progress->visible) return;
    double t = now();
    if (progress->drawn > 0 && t - progress->drawn < REDRAW_SECONDS && done < progress->total) return;
    progress->drawn = t;
    visible_bar = progress;
    double share = (double)done / (double)progress->total;
    if (share > 1) share = 1;
    char bar[BAR_WIDTH * 3 + 1] = "", left[32] = "", line[512];
    int columns = terminal_columns(), width = columns - BESIDE_BAR < BAR_WIDTH ? columns - BESIDE_BAR : BAR_WIDTH;
    if (width < 4) width = 0; /* a line that wraps cannot be drawn over */
    for (int i = 0; i < width; i++) strcat(bar, i < (int)(share * width + 0.5) ? "█" : "░");
    if (done > 0 && done < progress->total) format_left(left, sizeof left, (t - progress->started) * (1 - share) / share);
    int used = snprintf(line, sizeof line, "%s%s%s %lld/%lld  %s  ", progress->label, width ? " " : "", bar, (long long)done,
                        (long long)progress->total, left);
    if (!width && columns - 1 < used) line[columns > 1 ? columns - 1 : 0] = 0; /* no bar: all of it are letters */
    int room = columns - 1 - (used - (int)strlen(bar) + width);
    fprintf(stderr, "\r\033[K%s%.*s", line, room > 0 && note ? room : 0, note ? note : "");
    fflush(stderr);
}

void fkp_progress_end(fkp_progress *progress)
{
    if (visible_bar == progress) {
        fkp_progress_hide();
        visible_bar = NULL;
    }
    progress->visible = false;
}

void fkp_progress_hide(void)
{
    if (!visible_bar) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    visible_bar->drawn = 0;
}
