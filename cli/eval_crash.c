/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers around candidates. Every text is made beforehand: a handler may only write it. */
#define _GNU_SOURCE
#include "cli/eval_crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES (64 << 10)

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { SIGNALS = sizeof signals / sizeof signals[0] };

struct fkp_crash_guard {
    int count, json_fd;
    char **messages, **lines; /* by candidate */
    char *stack;
    struct sigaction before[SIGNALS];
    stack_t stack_before;
};

static fkp_crash_guard *active;

static void write_all(int fd, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t n = write(fd, text, left);
        if (n <= 0) return;
        text += n;
        left -= (size_t)n;
    }
}

static void on_crash(int number)
{
    int index = fkp_candidate_set_running();
    if (!active || index < 0 || index >= active->count) {
        signal(number, SIG_DFL); /* not a candidate: the crash is ours */
        raise(number);
        return;
    }
    write_all(STDERR_FILENO, active->messages[index]);
    if (active->json_fd >= 0) write_all(active->json_fd, active->lines[index]);
    _exit(1);
}

static fk_status prepare(fkp_crash_guard *g, const fkp_candidate_set *set, json_t *record)
{
    g->messages = calloc((size_t)set->count + 1, sizeof *g->messages);
    g->lines = calloc((size_t)set->count + 1, sizeof *g->lines);
    g->stack = malloc(STACK_BYTES);
    if (!g->messages || !g->lines || !g->stack) return fk_fail(FK_ERROR_MEMORY, "out of memory for a crash guard");
    for (int i = 0; i < set->count; i++) {
        json_t *line = json_copy(record);
        char *detail, *text;
        if (asprintf(&detail, "candidate %s crashed", set->ops[i]->name) < 0) detail = NULL;
        json_object_set_new(line, "status", json_string("CRASHED"));
        json_object_set_new(line, "detail", json_string(detail ? detail : ""));
        if (asprintf(&g->messages[i], "fastkernels eval: CRASHED: %s\n", detail ? detail : "") < 0) g->messages[i] = NULL;
        text = json_dumps(line, JSON_COMPACT);
        if (!text || asprintf(&g->lines[i], "%s\n", text) < 0) g->lines[i] = NULL;
        json_decref(line);
        free(detail);
        free(text);
        if (!g->messages[i] || !g->lines[i]) return fk_fail(FK_ERROR_MEMORY, "out of memory for a crash guard");
        g->count = i + 1;
    }
    return FK_OK;
}

fk_status fkp_crash_guard_create(const fkp_candidate_set *set, json_t *record, FILE *json, fkp_crash_guard **out)
{
    fkp_crash_guard *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g) return fk_fail(FK_ERROR_MEMORY, "out of memory for a crash guard");
    g->json_fd = json ? fileno(json) : -1;
    fk_status status = prepare(g, set, record);
    if (status != FK_OK) {
        fkp_crash_guard_destroy(g);
        return status;
    }
    active = g;
    sigaltstack(&(stack_t){.ss_sp = g->stack, .ss_size = STACK_BYTES}, &g->stack_before); /* the crash may be a full stack */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_crash;
    action.sa_flags = SA_ONSTACK;
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &g->before[i]);
    *out = g;
    return FK_OK;
}

void fkp_crash_guard_destroy(fkp_crash_guard *g)
{
    if (!g) return;
    if (active == g) {
        for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &g->before[i], NULL);
        sigaltstack(&g->stack_before, NULL);
        active = NULL;
    }
    for (int i = 0; i < g->count; i++) {
        free(g->messages[i]);
        free(g->lines[i]);
    }
    free(g->messages);
    free(g->lines);
    free(g->stack);
    free(g);
}
