/* SPDX-License-Identifier: Apache-2.0 */
/* Saving, reading and using measured ceilings. */
#define _GNU_SOURCE
#include "bench/roofline.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/json.h"

#define PATH_SIZE 4096

static fk_status describe(fk_device device, fk_backend **backend, fk_device_info *info)
{
    FK_TRY(fk_backend_get(device, backend));
    return (*backend)->describe(*backend, info);
}

/* "<cache>/roofline/nvidia-h200-132.json": the name in small letters and the number of processors. */
static fk_status file_of(const fk_device_info *info, const char *cache_dir, char path[PATH_SIZE])
{
    char slug[160];
    size_t n = 0;
    for (const char *p = info->name; *p && n + 1 < sizeof slug; p++) {
        if (isalnum((unsigned char)*p)) slug[n++] = (char)tolower((unsigned char)*p);
        else if (n > 0 && slug[n - 1] != '-') slug[n++] = '-';
    }
    while (n > 0 && slug[n - 1] == '-') n--;
    slug[n] = 0;
    if (snprintf(path, PATH_SIZE, "%s/roofline/%s-%d.json", cache_dir, slug, info->processors) >= PATH_SIZE)
        return fk_fail(FK_ERROR_INVALID, "the cache folder's path is too long: %s", cache_dir);
    return FK_OK;
}

static double rate(const json_t *json, const char *key, double scale)
{
    const json_t *value = json_object_get(json, key);
    double number = json_is_number(value) ? json_number_value(value) : 0;
    return isfinite(number) && number > 0 ? number * scale : 0;
}

fk_status fk_roofline_load(fk_device device, const char *cache_dir, fk_roofline *roofline)
{
    fk_backend *backend;
    fk_device_info info;
    char path[PATH_SIZE], name[32];
    json_t *json;
    *roofline = (fk_roofline){0};
    FK_TRY(describe(device, &backend, &info));
    FK_TRY(file_of(&info, cache_dir, path));
    if (access(path, R_OK) != 0)
        return fk_fail(FK_ERROR_MISSING, "the roofline of %s (%s) is not measured yet: fastkernels doctor --measure --device %s",
                       fk_device_format(device, name, sizeof name), info.name, name);
    FK_TRY(fkp_json_load_file(path, (fkp_json_limits){8, 1000}, &json));
    const json_t *rates = json_object_get(json, "roofline");
    *roofline = (fk_roofline){.copy_bytes_s = rate(rates, "copy_gb_s", 1e9),
                              .read_bytes_s = rate(rates, "read_gb_s", 1e9),
                              .f32_flops = rate(rates, "fp32_gflops", 1e9),
                              .bf16_flops = rate(rates, "bf16_gflops", 1e9),
                              .empty_call_s = rate(rates, "empty_call_us", 1e-6),
                              .empty_replay_s = rate(rates, "empty_replay_us", 1e-6)};
    json_decref(json);
    if (roofline->copy_bytes_s <= 0)
        return fk_fail(FK_ERROR_INVALID, "%s holds no roofline; measure again: fastkernels doctor --measure --device %s", path,
                       fk_device_format(device, name, sizeof name));
    return FK_OK;
}

static json_t *real_or_null(double value)
{
    return isfinite(value) && value > 0 ? json_real(value) : json_null();
}

json_t *fk_roofline_json(const fk_roofline *roofline)
{
    json_t *json = json_object();
    json_object_set_new(json, "copy_gb_s", real_or_null(roofline->copy_bytes_s / 1e9));
    json_object_set_new(json, "read_gb_s", real_or_null(roofline->read_bytes_s / 1e9));
    json_object_set_new(json, "fp32_gflops", real_or_null(roofline->f32_flops / 1e9));
    json_object_set_new(json, "bf16_gflops", real_or_null(roofline->bf16_flops / 1e9));
    json_object_set_new(json, "empty_call_us", real_or_null(roofline->empty_call_s * 1e6));
    json_object_set_new(json, "empty_replay_us", real_or_null(roofline->empty_replay_s * 1e6));
    return json;
}

/* Makes the folders of `path`'s directory part. */
static fk_status make_folders(const char *path)
{
    char part[PATH_SIZE];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return fk_fail(FK_ERROR_IO, "cannot make %s: %s", part, strerror(errno));
    }
    return FK_OK;
}

static fk_status save(const fk_device_info *info, const char *cache_dir, const fk_roofline *roofline)
{
    char path[PATH_SIZE], partial[PATH_SIZE + 16], when[32];
    time_t now = time(NULL);
    struct tm utc;
    FK_TRY(file_of(info, cache_dir, path));
    FK_TRY(make_folders(path));
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *json = json_object();
    json_object_set_new(json, "schema", json_string("fastkernels/roofline/1"));
    json_object_set_new(json, "name", json_string(info->name));
    json_object_set_new(json, "description", json_string(info->description));
    json_object_set_new(json, "processors", json_integer(info->processors));
    json_object_set_new(json, "measured", json_string(when));
    json_object_set_new(json, "roofline", fk_roofline_json(roofline));
    snprintf(partial, sizeof partial, "%s.%ld", path, (long)getpid());
    errno = 0;
    bool written = json_dump_file(json, partial, JSON_INDENT(2) | JSON_REAL_PRECISION(8)) == 0;
    json_decref(json);
    if (written && rename(partial, path) == 0) return FK_OK;
    fk_status status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, errno ? strerror(errno) : "disk full?");
    unlink(partial);
    return status;
}

fk_status fk_roofline_measure(fk_device device, const char *cache_dir, fk_roofline *roofline)
{
    fk_backend *backend;
    fk_device_info info;
    *roofline = (fk_roofline){0};
    FK_TRY(describe(device, &backend, &info));
    FK_TRY(backend->measure(backend, roofline));
    return save(&info, cache_dir, roofline);
}

fk_status fk_roofline_get(fk_device device, const char *cache_dir, fk_roofline *roofline)
{
    if (fk_roofline_load(device, cache_dir, roofline) == FK_OK) return FK_OK;
    fk_status status = fk_roofline_measure(device, cache_dir, roofline);
    return status == FK_ERROR_IO && roofline->copy_bytes_s > 0 ? FK_OK : status;
}

double fk_roofline_seconds(const fk_roofline *roofline, const fk_cost *cost, bool bf16)
{
    double flops = bf16 && roofline->bf16_flops > 0 ? roofline->bf16_flops : roofline->f32_flops, memory = 0, arithmetic = 0;
    /* What is only read moves at the read rate; every byte written goes with a byte read at the copy rate. */
    double copied = 2 * fmin(cost->read_bytes, cost->write_bytes), rest = cost->read_bytes + cost->write_bytes - copied;
    if (roofline->copy_bytes_s > 0) {
        double alone = roofline->read_bytes_s > 0 && cost->read_bytes > cost->write_bytes ? roofline->read_bytes_s
                                                                                          : roofline->copy_bytes_s;
        memory = copied / roofline->copy_bytes_s + rest / alone;
    }
    if (flops > 0) arithmetic = cost->flops / flops;
    return fmax(memory, arithmetic);
}
