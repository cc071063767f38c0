/* SPDX-License-Identifier: Apache-2.0 */
/* Parent and child share a page: which candidate runs, what is to be written, whether the end was a regular one. */
#define _GNU_SOURCE
#include "cli/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/candidate_set.h"
#include "bench/process.h"
#include "bench/protocol.h"
#include "bench/record.h"
#include "cli/interrupt.h"
#include "cli/output.h"

#define CALL_TIMEOUT_S 60  /* of one call, on the processor that makes it */
#define STALL_S 300        /* of a device: calls return at once there, and what hangs is whoever waits for it */
#define LOOK_S 0.1
#define HEAD_BYTES ((size_t)64 << 10)
#define LINES_BYTES ((size_t)64 << 20) /* backed by memory only as far as it is used */

typedef struct shared_page {
    fkp_candidate_watch watch;
    bool ended; /* regularly, with this code: */
    int code;
    size_t bytes; /* of lines */
    char head[HEAD_BYTES], lines[LINES_BYTES];
} shared_page;

static shared_page *page; /* in the child */

double fkp_call_timeout_s(double usual_s)
{
    const char *text = getenv("FK_BENCH_TIMEOUT_SEC"); /* the original's name */
    double value = text ? strtod(text, NULL) : 0;
    return value > 0 ? value : usual_s;
}

/* ---- the child's side */

bool fkp_supervised(void)
{
    return page != NULL;
}

fk_status fkp_supervised_line(const char *line)
{
    size_t n = strlen(line);
    if (n + 1 > LINES_BYTES - page->bytes) return fk_fail(FK_ERROR_MEMORY, "a result of %zu bytes is too long", n);
    memcpy(page->lines + page->bytes, line, n);
    page->lines[page->bytes + n] = '\n';
    page->bytes += n + 1;
    return FK_OK;
}

void fkp_supervised_head(const json_t *record)
{
    char *text = page ? json_dumps(record, JSON_COMPACT) : NULL;
    if (text && strlen(text) < HEAD_BYTES) strcpy(page->head, text);
    free(text);
}

void fkp_supervised_end(int code)
{
    if (!page) return;
    page->code = code;
    page->ended = true;
}

/* ---- the parent's side */

static const char *candidate_name(const shared_page *p)
{
    int last = p->watch.last;
    return last >= 0 && last < fk_op_count() ? fk_op_at(last)->name : NULL;
}

/* Whether a candidate has not returned, or the device that it gave work to. */
static bool hangs(const shared_page *p, uint64_t *moves, double *since)
{
    double now = fkp_now();
    if (p->watch.moves != *moves) {
        *moves = p->watch.moves;
        *since = now;
    }
    if (p->watch.running >= 0) return now - *since > fkp_call_timeout_s(CALL_TIMEOUT_S);
    return p->watch.judged && p->watch.last >= 0 && now - *since > fkp_call_timeout_s(STALL_S);
}

/* True when the child had to be ended. */
static bool wait_for_child(fkp_process *child, const shared_page *p)
{
    uint64_t moves = 0;
    double since = fkp_now();
    bool told = false;
    while (!fkp_process_wait(child, fkp_now() + LOOK_S, NULL)) {
        if (fkp_interrupted() && !told) kill(child->pid, SIGINT);
        told = fkp_interrupted();
        if (!hangs(p, &moves, &since)) continue;
        fkp_process_kill(child);
        return true;
    }
    return false;
}

/* The record that the child did not live to write. */
static void add_record(shared_page *p, fkp_case_status status, const char *detail)
{
    if (p->bytes > 0) return;
    p->head[HEAD_BYTES - 1] = 0;
    json_t *record = json_loads(p->head, 0, NULL);
    if (!record) record = json_object();
    json_object_set_new(record, "status", json_string(fkp_case_status_name(status)));
    json_object_set_new(record, "detail", fkp_json_text(detail));
    char *text = json_dumps(record, JSON_COMPACT);
    size_t n = text ? strlen(text) : 0;
    if (n && n + 1 <= LINES_BYTES) {
        memcpy(p->lines, text, n);
        p->lines[n] = '\n';
        p->bytes = n + 1;
    }
    free(text);
    json_decref(record);
}

static int explain(fkp_cli *cli, shared_page *p, const fkp_process *child, bool timed_out)
{
    const char *name = candidate_name(p);
    char how[128], detail[512];
    fkp_process_end(child, how, sizeof how);
    if (!timed_out && fkp_interrupted()) return fkp_exit(cli, fkp_interrupt_check());
    if (!name) return fkp_exit(cli, fk_fail(FK_ERROR_INTERNAL, "its process ended: %s", how));
    fkp_case_status status = timed_out ? FKP_TIMEOUT : FKP_CRASHED;
    if (timed_out) snprintf(detail, sizeof detail, "candidate %s did not return in time", name);
    else if (p->watch.running >= 0 && child->signal) snprintf(detail, sizeof detail, "candidate %s crashed: %s", name, how);
    else if (p->watch.running >= 0) snprintf(detail, sizeof detail, "candidate %s ended the process: %s", name, how);
    else snprintf(detail, sizeof detail, "the process ended after candidate %s had run in it: %s", name, how);
    add_record(p, status, detail);
    fprintf(stderr, "fastkernels %s: %s: %s\n", cli->command->name, fkp_case_status_name(status), detail);
    return FKP_EXIT_JUDGED;
}

static fk_status write_lines(const fkp_cli *cli, const shared_page *p)
{
    const char *path = cli->common.json;
    if (!path || p->bytes == 0 || p->bytes > LINES_BYTES) return FK_OK;
    FILE *file = *path ? fopen(path, "a") : stdout;
    bool good = file && fwrite(p->lines, 1, p->bytes, file) == p->bytes && fflush(file) == 0;
    int error = errno;
    if (file && *path) fclose(file);
    if (good || (!*path && error == EPIPE)) return FK_OK; /* a reader that went away is no failure */
    return fk_fail(FK_ERROR_IO, "cannot write %s%s: %s", *path ? "" : "to ", *path ? path : "stdout", strerror(error));
}

static int supervise(fkp_cli *cli, fkp_process *child, shared_page *p)
{
    bool timed_out = wait_for_child(child, p);
    int code = p->ended && !timed_out ? p->code : explain(cli, p, child, timed_out);
    if (p->ended && child->exit_code > 0) code = child->exit_code; /* a sanitizer's, at the very end */
    fkp_process_kill(child);
    fk_status status = write_lines(cli, p);
    return status == FK_OK ? code : fkp_exit(cli, status);
}

bool fkp_supervise(fkp_cli *cli, int *code)
{
    shared_page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    fkp_process child;
    if (p == MAP_FAILED || fkp_process_fork(&child) != FK_OK) {
        *code = fkp_exit(cli, fk_fail(FK_ERROR_MEMORY, "cannot start a process for the candidates: %s", strerror(errno)));
        if (p != MAP_FAILED) munmap(p, sizeof *p);
        return true;
    }
    if (child.pid == 0) {
        page = p;
        page->watch.running = page->watch.last = -1;
        fkp_candidate_set_watch(&page->watch);
        return false;
    }
    *code = supervise(cli, &child, p);
    munmap(p, sizeof *p);
    return true;
}
