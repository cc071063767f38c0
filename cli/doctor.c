/* SPDX-License-Identifier: Apache-2.0 */
/* `doctor`: what is installed and what the device can do. Looks only; what is missing is no failure, but is named together
 * with what it is needed for. */
#include <string.h>

#include "bench/roofline.h"
#include "cli/doctor.h"
#include "cli/interrupt.h"
#include "cli/table.h"

typedef struct doctor_options {
    bool measure;
} doctor_options;

static const fkp_option options[] = {
    {"measure", FKP_OPT_FLAG, offsetof(doctor_options, measure), NULL,
     "measure copy, read and matrix rates of the device (without --device of all) and save them in the cache", .max = 0},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

void fkp_check_add(fkp_checks *checks, const char *group, const char *name, bool ok, const char *needed_for, const char *format, ...)
{
    char detail[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    if (fkp_prints(checks->cli)) {
        if (!checks->group || strcmp(checks->group, group) != 0)
            fkp_print(checks->cli, "%s%s%s%s\n", checks->group ? "\n" : "", fkp_style_on(checks->cli, FKP_BOLD), group,
                      fkp_style_off(checks->cli, FKP_BOLD));
        fkp_style style = ok ? FKP_GREEN : FKP_YELLOW;
        fkp_print(checks->cli, "  %s%s%s %-18s %s", fkp_style_on(checks->cli, style), ok ? "✓" : "–",
                  fkp_style_off(checks->cli, style), name, detail);
        if (!ok && needed_for)
            fkp_print(checks->cli, " %s(needed for %s)%s", fkp_style_on(checks->cli, FKP_DIM), needed_for,
                      fkp_style_off(checks->cli, FKP_DIM));
        fkp_print(checks->cli, "\n");
    }
    checks->group = group;
    json_t *json = json_object();
    json_object_set_new(json, "group", json_string(group));
    json_object_set_new(json, "name", json_string(name));
    json_object_set_new(json, "ok", json_boolean(ok));
    json_object_set_new(json, "detail", fkp_json_text(detail));
    json_object_set_new(json, "needed_for", fkp_json_text(needed_for));
    json_array_append_new(checks->list, json);
}

static void rate_cell(fkp_table *table, double value, double scale)
{
    if (value > 0) fkp_table_cell(table, FKP_PLAIN, "%.4g", value / scale);
    else fkp_table_cell(table, FKP_DIM, "-");
}

/* Loads or measures the ceilings of the devices in question; returns {"cpu": {...}, ...}. */
static fk_status rooflines(fkp_cli *cli, const doctor_options *o, json_t **out)
{
    static const char *const heads[] = {"DEVICE", ">COPY GB/S", ">READ GB/S", ">F32 GFLOP/S", ">BF16 GFLOP/S", ">CALL US", "NAME", NULL};
    fk_device devices[2] = {{FK_CPU, 0}, {FK_CUDA, 0}};
    int count = 2, rows = 0;
    fk_status status = FK_OK;
    fkp_table table;
    *out = json_object();
    if (cli->common.device) {
        FK_TRY(fkp_cli_device(cli, &devices[0]));
        count = 1;
    }
    fkp_table_init(&table, heads);
    for (int i = 0; i < count && status == FK_OK && !fkp_interrupted(); i++) {
        fk_backend *backend;
        fk_device_info info;
        fk_roofline r;
        char name[32];
        fk_device_format(devices[i], name, sizeof name);
        if (fk_backend_get(devices[i], &backend) != FK_OK || backend->describe(backend, &info) != FK_OK) continue;
        if (o->measure) fkp_info(cli, "measuring %s (%s) ...", name, info.name);
        status = o->measure ? fk_roofline_measure(devices[i], cli->common.cache, &r)
                            : fk_roofline_load(devices[i], cli->common.cache, &r);
        if (status == FK_ERROR_MISSING && !o->measure) {
            status = FK_OK;
            continue;
        }
        if (status != FK_OK) break;
        rows++;
        json_object_set_new(*out, name, fk_roofline_json(&r));
        fkp_table_cell(&table, FKP_BOLD, "%s", name);
        rate_cell(&table, r.copy_bytes_s, 1e9);
        rate_cell(&table, r.read_bytes_s, 1e9);
        rate_cell(&table, r.f32_flops, 1e9);
        rate_cell(&table, r.bf16_flops, 1e9);
        rate_cell(&table, r.empty_call_s, 1e-6);
        fkp_table_cell(&table, FKP_DIM, "%s", info.name);
    }
    fkp_print(cli, "\n%sRoofline%s\n", fkp_style_on(cli, FKP_BOLD), fkp_style_off(cli, FKP_BOLD));
    if (rows == 0) fkp_print(cli, "  not measured yet: fastkernels doctor --measure\n");
    else fkp_table_finish(cli, &table);
    return status != FK_OK ? status : fkp_interrupt_check();
}

static int run(fkp_cli *cli, const void *values)
{
    fkp_checks checks = {.cli = cli, .list = json_array()};
    fk_device device;
    char name[32];
    json_t *measured = NULL;
    json_t *result = fkp_result(cli, "doctor");
    fkp_doctor_check_devices(&checks);
    fkp_doctor_check_tools(&checks);
    fkp_doctor_check_files(&checks);
    fkp_doctor_check_isolation(&checks);
    fk_status status = rooflines(cli, values, &measured);
    if (status == FK_OK) status = fkp_cli_device(cli, &device);
    if (status == FK_OK) {
        json_t *own = json_object_get(measured, fk_device_format(device, name, sizeof name));
        json_object_set_new(result, "roofline", own ? json_incref(own) : json_null());
        json_object_set(result, "rooflines", measured);
        json_object_set(result, "checks", checks.list);
        fkp_emit(cli, json_incref(result));
    }
    json_decref(result);
    json_decref(measured);
    json_decref(checks.list);
    return fkp_exit(cli, status);
}

const fkp_command fkp_command_doctor = {
    .name = "doctor",
    .summary = "what is installed and what the device can do; measures and saves its roofline",
    .options = options,
    .options_size = sizeof(doctor_options),
    .details = "Something missing is reported with what it is needed for; it is no failure of doctor.",
    .examples = {"fastkernels doctor", "fastkernels doctor --measure --device cpu --json"},
    .max_args = 0,
    .run = run};
