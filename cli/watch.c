/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates are looked at a few times a second: editors replace, truncate and rename files in too many ways to be told apart
 * by events. */
#define _GNU_SOURCE
#include "cli/watch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/interrupt.h"

#define POLL_MS 150

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The state of every operator's candidate into `now`. A folder that is empty or gone has none; what else is wrong with it, the next
 * round says. */
static void look(const fkp_watch *watch, struct stat *now)
{
    fkp_candidate_list list;
    memset(now, 0, (size_t)fk_op_count() * sizeof *now);
    if (fkp_candidates_find(watch->path, watch->device, &list) != FK_OK) return;
    for (int i = 0; i < list.count; i++)
        if (stat(list.items[i].path, &now[list.items[i].op->index]) != 0) now[list.items[i].op->index] = (struct stat){0};
    fkp_candidates_deinit(&list);
}

fk_status fkp_watch_open(fkp_watch *watch, const char *path, fk_device_type device)
{
    *watch = (fkp_watch){.path = path, .device = device, .seen = calloc((size_t)fk_op_count(), sizeof *watch->seen)};
    if (!watch->seen) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    look(watch, watch->seen);
    return FK_OK;
}

void fkp_watch_close(fkp_watch *watch)
{
    free(watch->seen);
    watch->seen = NULL;
}

/* Names of the operators whose candidates in `now` are not those seen. */
static char *changed(const fkp_watch *watch, const struct stat *now)
{
    size_t size = 1;
    for (int i = 0; i < fk_op_count(); i++) size += strlen(fk_op_at(i)->name) + 1;
    char *names = malloc(size), *end = names;
    for (int i = 0; names && i < fk_op_count(); i++)
        if (now[i].st_ino && !same(&now[i], &watch->seen[i])) {
            if (end > names) *end++ = ',';
            end = stpcpy(end, fk_op_at(i)->name);
        }
    if (names) *end = 0;
    return names;
}

fk_status fkp_watch_wait(fkp_watch *watch, char **ops)
{
    size_t count = (size_t)fk_op_count();
    struct stat *now = calloc(count, sizeof *now), *before = calloc(count, sizeof *before);
    fk_status status = now && before ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory");
    *ops = NULL;
    if (status == FK_OK) look(watch, before);
    while (status == FK_OK && !*ops) {
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        status = fkp_interrupt_check();
        if (status != FK_OK) break;
        look(watch, now);
        bool still = true;
        for (size_t i = 0; i < count; i++) still &= same(&now[i], &before[i]);
        memcpy(before, now, count * sizeof *now);
        if (!still) continue; /* somebody is writing */
        *ops = changed(watch, now);
        if (!*ops) status = fk_fail(FK_ERROR_MEMORY, "out of memory");
        else if (**ops) memcpy(watch->seen, now, count * sizeof *now);
        else {
            for (size_t i = 0; i < count; i++)
                if (!now[i].st_ino) watch->seen[i] = now[i]; /* removed; back again, it is new */
            free(*ops);
            *ops = NULL;
        }
    }
    free(now);
    free(before);
    return status;
}
