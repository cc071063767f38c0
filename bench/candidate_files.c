/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the candidates of a folder. */
#define _GNU_SOURCE
#include "bench/candidate_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nearest.h"

/* Kind of a file by its name; false for names that are no candidates at all. */
static bool kind_of(const char *name, fkp_candidate_kind *kind, size_t *stem)
{
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return false;
    *stem = (size_t)(dot - name);
    if (strcmp(dot, ".c") == 0) *kind = FKP_CANDIDATE_C;
    else if (strcmp(dot, ".cu") == 0) *kind = FKP_CANDIDATE_CUDA;
    else if (strcmp(dot, ".so") == 0) *kind = FKP_CANDIDATE_LIBRARY;
    else return false;
    return true;
}

static fk_status add_file(const char *folder, const char *name, fk_device_type device, fkp_candidate_list *list)
{
    fkp_candidate_file file = {0};
    size_t stem, length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] != '/' ? "/" : "";
    char op_name[128];
    if (!kind_of(name, &file.kind, &stem)) return FK_OK;
    snprintf(op_name, sizeof op_name, "%.*s", (int)stem, name);
    file.op = fk_op_find(op_name);
    if (!file.op) {
        fkp_nearest nearest = {.word = op_name};
        for (int i = 0; i < fk_op_count(); i++) fkp_nearest_offer(&nearest, fk_op_at(i)->name);
        fk_status status = fkp_fail_unknown("operator", &nearest, "a candidate's file is named as its operator");
        return fk_fail_context(status, "%s%s%s", folder, slash, name);
    }
    if (file.kind != FKP_CANDIDATE_LIBRARY && (file.kind == FKP_CANDIDATE_CUDA) != (device == FK_CUDA)) return FK_OK;
    if ((size_t)snprintf(file.path, sizeof file.path, "%s%s%s", folder, slash, name) >= sizeof file.path)
        return fk_fail(FK_ERROR_INVALID, "path too long: %s%s%s", folder, slash, name);
    struct stat info; /* what is no file would be waited for, or read without an end */
    if (stat(file.path, &info) != 0) return fk_fail(FK_ERROR_INVALID, "candidate %s: %s", file.path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fk_fail(FK_ERROR_INVALID, "candidate %s is %s, not a regular file", file.path,
                       S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket");
    if (access(file.path, R_OK) != 0) return fk_fail(FK_ERROR_INVALID, "candidate %s: %s", file.path, strerror(errno));
    for (int i = 0; i < list->count; i++)
        if (list->items[i].op == file.op)
            return fk_fail(FK_ERROR_INVALID, "two candidates for %s: %s and %s", op_name, list->items[i].path, file.path);
    fkp_candidate_file *items = realloc(list->items, (size_t)(list->count + 1) * sizeof *items);
    if (!items) return fk_fail(FK_ERROR_MEMORY, "out of memory for candidates");
    list->items = items;
    items[list->count++] = file;
    return FK_OK;
}

static int is_no_dot(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

fk_status fkp_candidates_find(const char *path, fk_device_type device, fkp_candidate_list *out)
{
    *out = (fkp_candidate_list){0};
    struct stat info;
    if (stat(path, &info) != 0) return fk_fail(FK_ERROR_INVALID, "candidates %s: %s", path, strerror(errno));
    fk_status status = FK_OK;
    if (S_ISDIR(info.st_mode)) {
        struct dirent **entries;
        int n = scandir(path, &entries, is_no_dot, alphasort);
        if (n < 0) return fk_fail(FK_ERROR_INVALID, "candidates %s: %s", path, strerror(errno));
        for (int i = 0; i < n; i++) {
            if (status == FK_OK) status = add_file(path, entries[i]->d_name, device, out);
            free(entries[i]);
        }
        free(entries);
    } else {
        char folder[1024];
        const char *slash = strrchr(path, '/');
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
        if (slash == path) snprintf(folder, sizeof folder, "/.");
        status = add_file(folder, slash ? slash + 1 : path, device, out);
    }
    if (status == FK_OK && out->count == 0)
        status = fk_fail(FK_ERROR_INVALID, "no candidates for %s in %s: they are files <operator>.%s or <operator>.so",
                         device == FK_CUDA ? "cuda" : "cpu", path, device == FK_CUDA ? "cu" : "c");
    if (status != FK_OK) fkp_candidates_deinit(out);
    return status;
}

void fkp_candidates_deinit(fkp_candidate_list *list)
{
    free(list->items);
    *list = (fkp_candidate_list){0};
}
