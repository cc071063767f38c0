/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, resuming and appending result files. */
#define _GNU_SOURCE
#include "bench/results.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* "AMD EPYC 9B14" -> "amd-epyc-9b14" */
static void folder_name(const char *device_name, char *buf, size_t size)
{
    size_t n = 0;
    for (const char *c = device_name; *c && n + 1 < size; c++) {
        bool word = isalnum((unsigned char)*c);
        if (word) buf[n++] = (char)tolower((unsigned char)*c);
        else if (n && buf[n - 1] != '-') buf[n++] = '-';
    }
    while (n && buf[n - 1] == '-') n--;
    buf[n] = 0;
    if (!n) snprintf(buf, size, "device");
}

static fk_status make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return FK_OK;
    return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", path, strerror(errno));
}

static int is_bench_file(const struct dirent *entry)
{
    const char *end = "-bench.json";
    size_t n = strlen(entry->d_name), m = strlen(end);
    return n > m && strcmp(entry->d_name + n - m, end) == 0;
}

static bool newest(const char *folder, char *path, size_t size)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_bench_file, alphasort); /* names begin with the date */
    if (n > 0) snprintf(path, size, "%s/%s", folder, entries[n - 1]->d_name);
    for (int i = 0; i < n; i++) free(entries[i]);
    if (n >= 0) free(entries);
    return n > 0;
}

static fk_status choose_path(fkp_results *results, const char *path, const char *device_name, bool resume)
{
    if (path) {
        snprintf(results->path, sizeof results->path, "%s", path);
        return FK_OK;
    }
    char name[64], folder[128], date[32];
    folder_name(device_name, name, sizeof name);
    snprintf(folder, sizeof folder, "results/%s", name);
    if (resume && newest(folder, results->path, sizeof results->path)) return FK_OK;
    FK_TRY(make_folder("results"));
    FK_TRY(make_folder(folder));
    time_t now = time(NULL);
    struct tm local;
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    for (int i = 1; i < 1000; i++) { /* another bench may have begun in the same second */
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "-%d", i);
        snprintf(results->path, sizeof results->path, "%s/%s%s-bench.json", folder, date, number);
        int fd = open(results->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) close(fd);
        if (fd >= 0 || errno != EEXIST) break;
    }
    return FK_OK;
}

/* Whoever writes results holds a lock on their file. */
static fk_status check_unlocked(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return locked ? fk_fail(FK_ERROR_INVALID, "another bench is writing %s", path) : FK_OK;
}

/* Cases of an earlier run that came to an end; the last line may be cut off. */
static void read_finished(fkp_results *results)
{
    FILE *file = fopen(results->path, "r");
    char *line = NULL;
    size_t capacity = 0;
    while (file && getline(&line, &capacity, file) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        const char *key = json_string_value(json_object_get(object, "key"));
        const char *status = json_string_value(json_object_get(object, "status"));
        if (key && status && strcmp(status, "NOT_RUN") != 0) json_object_set(results->finished, key, object);
        json_decref(object);
    }
    free(line);
    if (file) fclose(file);
}

/* The file anew with what is finished: summaries and cases that did not run go. */
static fk_status rewrite(fkp_results *results)
{
    char partial[sizeof results->path + 8];
    const char *key;
    json_t *line;
    if (json_object_size(results->finished) == 0) {
        results->file = fopen(results->path, "w");
        return results->file ? FK_OK : fk_fail(FK_ERROR_IO, "cannot write %s: %s", results->path, strerror(errno));
    }
    snprintf(partial, sizeof partial, "%s.new", results->path);
    results->file = fopen(partial, "w");
    if (!results->file) return fk_fail(FK_ERROR_IO, "cannot write %s: %s", partial, strerror(errno));
    fk_status status = FK_OK;
    json_object_foreach(results->finished, key, line)
        if (status == FK_OK) status = fkp_results_write(results, line);
    if (status == FK_OK && rename(partial, results->path) != 0)
        status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", results->path, strerror(errno));
    if (status != FK_OK) remove(partial);
    return status;
}

fk_status fkp_results_open(fkp_results *results, const char *path, const char *device_name, bool resume)
{
    *results = (fkp_results){.finished = json_object()};
    fk_status status = choose_path(results, path, device_name, resume);
    if (status == FK_OK) status = check_unlocked(results->path);
    if (status == FK_OK && resume) read_finished(results);
    if (status == FK_OK) status = rewrite(results);
    if (status == FK_OK) flock(fileno(results->file), LOCK_EX | LOCK_NB);
    if (status != FK_OK) fkp_results_close(results);
    return status;
}

void fkp_results_close(fkp_results *results)
{
    if (results->file) fclose(results->file);
    json_decref(results->finished);
    results->file = NULL;
    results->finished = NULL;
}

void fkp_results_key(const fkp_case *c, uint64_t candidate_hash, uint64_t environment_hash, char key[128])
{
    snprintf(key, 128, "%.60s %016" PRIx64 " %016" PRIx64 " %016" PRIx64, c->op->name, c->hash, candidate_hash, environment_hash);
}

const json_t *fkp_results_find(const fkp_results *results, const char *key)
{
    return json_object_get(results->finished, key);
}

fk_status fkp_results_write(fkp_results *results, const json_t *line)
{
    errno = 0;
    if (json_dumpf(line, results->file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0 && fputc('\n', results->file) != EOF &&
        fflush(results->file) == 0)
        return FK_OK;
    return fk_fail(FK_ERROR_IO, "cannot write %s: %s", results->path, strerror(errno ? errno : EIO));
}
