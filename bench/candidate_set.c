/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a candidates folder in this process. */
#include "bench/candidate_set.h"

#include <stdlib.h>

#include <fk/door.h>

#include "bench/compile.h"

#define COMPILE_TIMEOUT_S 120.0

static fkp_candidate_watch nobody = {.running = -1, .last = -1}, *watch = &nobody;

void fkp_candidate_set_watch(fkp_candidate_watch *by)
{
    watch = by;
}

void fkp_candidate_set_judged(bool judged)
{
    watch->moves++;
    watch->judged = judged;
}

/* Code of the candidate of `op` (-1: none) begins to run; returns what ran before. */
static int32_t enter(int32_t op)
{
    int32_t before = watch->running;
    watch->moves++;
    watch->running = op;
    if (op >= 0) watch->last = op;
    return before;
}

/* `user` is the candidate's own implementation struct. */
static fk_status run_noted(fk_ctx *ctx, const void *args, void *user)
{
    const fk_impl *impl = user;
    int32_t before = enter(fk_door_current(ctx)->index);
    fk_status status = impl->run(ctx, args, impl->user);
    enter(before);
    return status;
}

static fk_status open_one(const fkp_candidate_file *file, fk_device_type device, const char *cache_dir, bool (*stop)(void),
                          fk_candidate **out)
{
    const char *library = file->path;
    fkp_compiled compiled;
    if (file->kind != FKP_CANDIDATE_LIBRARY) {
        FK_TRY(fkp_candidate_compile(file, cache_dir, COMPILE_TIMEOUT_S, stop, &compiled));
        if (!compiled.good)
            return fk_fail(FK_ERROR_CANDIDATE, "candidate %s does not compile%s: %s", file->path,
                           compiled.timed_out ? " in time" : "", compiled.messages);
        library = compiled.library;
    }
    int32_t before = enter(file->op->index); /* its constructors */
    fk_status status = fk_candidate_open(library, file->op, device, out);
    enter(before);
    if (status == FK_OK) return FK_OK;
    fk_fail_context(status, "candidate %s", file->path);
    return status == FK_ERROR_MEMORY ? status : fk_fail(FK_ERROR_CANDIDATE, "%s", fk_error_message());
}

fk_status fkp_candidate_set_open(const char *path, fk_device_type device, const char *cache_dir, bool (*stop)(void),
                                 fkp_candidate_set *out)
{
    fkp_candidate_list list;
    *out = (fkp_candidate_set){0};
    FK_TRY(fkp_candidates_find(path, device, &list));
    fk_status status = FK_OK;
    out->items = calloc((size_t)list.count, sizeof *out->items);
    out->ops = calloc((size_t)list.count, sizeof *out->ops);
    out->impls = calloc((size_t)list.count, sizeof *out->impls);
    if (!out->items || !out->ops || !out->impls) status = fk_fail(FK_ERROR_MEMORY, "out of memory for %d candidates", list.count);
    for (int i = 0; i < list.count && status == FK_OK; i++) {
        status = open_one(&list.items[i], device, cache_dir, stop, &out->items[i]);
        if (status != FK_OK) break;
        out->ops[i] = list.items[i].op;
        const fk_impl *impl = fk_candidate_impl(out->items[i]);
        out->impls[i] = *impl;
        out->impls[i].run = run_noted;
        out->impls[i].user = (void *)(uintptr_t)impl;
        out->count++;
    }
    fkp_candidates_deinit(&list);
    if (status != FK_OK) fkp_candidate_set_close(out);
    return status;
}

void fkp_candidate_set_close(fkp_candidate_set *set)
{
    for (int i = 0; i < set->count; i++) fk_candidate_close(set->items[i]);
    free(set->items);
    free(set->ops);
    free(set->impls);
    *set = (fkp_candidate_set){0};
}

fk_status fkp_candidate_set_install(const fkp_candidate_set *set, const bool *without, fk_ctx *ctx)
{
    for (int i = 0; i < set->count; i++)
        if (!without || !without[i]) FK_TRY(fk_door_install(ctx, &set->impls[i]));
    return FK_OK;
}
