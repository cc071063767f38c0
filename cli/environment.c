/* SPDX-License-Identifier: Apache-2.0 */
/* What a number was measured on: system, processor, clocks, device, driver and libraries. */
#define _GNU_SOURCE
#include <fk/backend.h>

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cli/output.h"
#include "core/cpu_features.h"
#include "core/threads.h"

/* CPU flags that decide which kernels can run. */
static const char *const flags_of_interest[] = {"avx2",        "fma",         "f16c",       "avx512f",  "avx512bw",
                                                "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8", NULL};

/* Value of the first line of `path` that begins with `key`, past the separator; quotes are taken off. */
static bool file_value(const char *path, const char *key, char separator, char *buf, size_t size)
{
    FILE *f = fopen(path, "r");
    if (!f) return false;
    char line[8192];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *value = strchr(line, separator);
        if (!value) continue;
        value += 1 + strspn(value + 1, " \t\"");
        value[strcspn(value, "\"\n")] = 0;
        snprintf(buf, size, "%s", value);
        found = true;
    }
    fclose(f);
    return found;
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += length)
        if ((p == words || p[-1] == ' ') && (p[length] == ' ' || !p[length])) return true;
    return false;
}

static json_t *device_facts(const fk_device *device)
{
    fk_backend *backend;
    fk_device_info info;
    if (!device || fk_backend_get(*device, &backend) != FK_OK || backend->describe(backend, &info) != FK_OK)
        return json_null();
    json_t *facts = json_object();
    json_object_set_new(facts, "name", fkp_json_text(info.name));
    json_object_set_new(facts, "description", fkp_json_text(info.description)); /* driver and libraries */
    json_object_set_new(facts, "total_bytes", json_integer(info.total_bytes));
    json_object_set_new(facts, "last_level_cache_bytes", json_integer(info.last_level_cache_bytes));
    json_object_set_new(facts, "processors", json_integer(info.processors));
    if (info.capability) json_object_set_new(facts, "capability", json_integer(info.capability));
    return facts;
}

json_t *fkp_environment(const fkp_cli *cli, const fk_device *device)
{
    json_t *env = json_object(), *cpu_flags = json_array();
    struct utsname uts;
    char text[8192];
    if (file_value("/etc/os-release", "PRETTY_NAME=", '=', text, sizeof text))
        json_object_set_new(env, "system", fkp_json_text(text));
    if (uname(&uts) == 0) json_object_set_new(env, "kernel", fkp_json_text(uts.release));
    if (file_value("/proc/cpuinfo", "model name", ':', text, sizeof text))
        json_object_set_new(env, "cpu", fkp_json_text(text));
    if (file_value("/proc/cpuinfo", "cpu MHz", ':', text, sizeof text)) {
        json_t *clocks = json_object();
        json_object_set_new(clocks, "cpu_mhz", fkp_json_real(strtod(text, NULL)));
        json_object_set_new(env, "clocks", clocks);
    }
    if (file_value("/proc/cpuinfo", "flags", ':', text, sizeof text))
        for (const char *const *flag = flags_of_interest; *flag; flag++)
            if (has_word(text, *flag)) json_array_append_new(cpu_flags, json_string(*flag));
    fkp_cpu_level level;
    json_object_set_new(env, "cpu_flags", cpu_flags);
    json_object_set_new(env, "cpu_level", fkp_cpu_level_get(&level) == FK_OK ? json_string(fkp_cpu_level_name(level)) : json_null());
    json_object_set_new(env, "threads", json_integer(cli->common.threads > 0 ? cli->common.threads : fkp_threads_available()));
    json_object_set_new(env, "compiler", json_string(
#ifdef __clang__
                                             "clang " __clang_version__
#else
                                             "gcc " __VERSION__
#endif
                                             ));
    json_object_set_new(env, "device", device_facts(device));
    return env;
}
