/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the subcommand, parses its options, opens the outputs, runs it, and turns what happened into an exit code. */
#define _GNU_SOURCE
#include <fk/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "core/nearest.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/supervise.h"
#include "runtime/assets.h"

#define FKP_COMMAND(name) extern const fkp_command fkp_command_##name;
#define FKP_HIDDEN(name) FKP_COMMAND(name)
#include "cli/commands.def"
#undef FKP_COMMAND
#undef FKP_HIDDEN

const fkp_command *const fkp_commands[] = {
#define FKP_COMMAND(name) &fkp_command_##name,
#define FKP_HIDDEN(name) FKP_COMMAND(name)
#include "cli/commands.def"
    NULL};

#define COMMON(field) offsetof(fkp_common_options, field)
const fkp_option fkp_common_option_table[] = {
    {"device", FKP_OPT_STRING, COMMON(device), "cpu|cuda[:n]", "where to compute; without it cuda when one is there, else cpu", .max = 0},
    {"json", FKP_OPT_OPTIONAL, COMMON(json), "FILE", "JSON lines on stdout, and nothing else there; or in FILE", .max = 0},
    {"seed", FKP_OPT_INT, COMMON(seed), "N", "seed of everything random", .min = -1, .max = 1e18},
    {"threads", FKP_OPT_INT, COMMON(threads), "N", "CPU threads; 0 is all that the process may use", .min = 0, .max = 4096},
    {"cache", FKP_OPT_STRING, COMMON(cache), "DIR", "where models and measurements are kept; else $FK_CACHE, else ~/.cache/fastkernels", .max = 0},
    {"quiet", FKP_OPT_FLAG, COMMON(quiet), NULL, "no progress, no notes on stderr", .letter = 'q'},
    {"verbose", FKP_OPT_FLAG, COMMON(verbose), NULL, "more notes on stderr", .letter = 'v'},
    {"no-color", FKP_OPT_FLAG, COMMON(no_color), NULL, "no colours (as NO_COLOR in the environment)", .max = 0},
    {"help", FKP_OPT_FLAG, COMMON(help), NULL, "this text", .letter = 'h'},
    {NULL, FKP_OPT_FLAG, 0, NULL, NULL, .max = 0}};

int fkp_exit_code(fk_status status)
{
    switch (status) {
    case FK_OK:
        return FKP_EXIT_OK;
    case FK_ERROR_INVALID:
    case FK_ERROR_IO:
        return FKP_EXIT_USAGE;
    case FK_ERROR_MISSING:
    case FK_ERROR_UNSUPPORTED:
    case FK_ERROR_MEMORY:
        return FKP_EXIT_MISSING;
    case FK_ERROR_CANDIDATE:
        return FKP_EXIT_JUDGED;
    case FK_ERROR_INTERRUPTED:
        return FKP_EXIT_INTERRUPTED;
    case FK_ERROR_DEVICE:
    case FK_ERROR_INTERNAL:
        return FKP_EXIT_INTERNAL;
    }
    return FKP_EXIT_INTERNAL;
}

int fkp_exit(const fkp_cli *cli, fk_status status)
{
    if (status == FK_OK) return FKP_EXIT_OK;
    int code = fkp_exit_code(status);
    fkp_progress_hide();
    fprintf(stderr, "fastkernels%s%s: %s\n", cli->command ? " " : "", cli->command ? cli->command->name : "",
            fk_error_message());
    if (code == FKP_EXIT_INTERNAL)
        fprintf(stderr, "This is a bug in FastKernels (version %s, commit %s). Please report it with the command line and this message.\n",
                fkp_version, fkp_commit);
    return code;
}

fk_status fkp_cli_device(const fkp_cli *cli, fk_device *device)
{
    fk_backend *backend;
    FK_TRY(fk_device_parse(cli->common.device, device));
    return fk_backend_get(*device, &backend);
}

/* The words of argv, quoted where a shell would need it. */
static char *join_words(int argc, char **argv)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@+%";
    size_t size = 1;
    for (int i = 0; i < argc; i++) size += 4 * strlen(argv[i]) + 3;
    char *line = malloc(size), *out = line;
    if (!line) return NULL;
    for (int i = 0; i < argc; i++) {
        const char *word = i ? argv[i] : "fastkernels";
        bool quote = !*word || word[strspn(word, plain)];
        if (i) *out++ = ' ';
        if (quote) *out++ = '\'';
        for (const char *p = word; *p; p++) {
            if (*p == '\'') out = stpcpy(out, "'\\'");
            *out++ = *p;
        }
        if (quote) *out++ = '\'';
    }
    *out = 0;
    return line;
}

static fk_status check_args(const fkp_cli *cli, const void *values)
{
    const fkp_command *command = cli->command;
    if (command->max_args >= 0 && cli->num_args > command->max_args)
        return fk_fail(FK_ERROR_INVALID, "unexpected argument '%s'; usage: fastkernels %s%s%s [options]",
                       cli->args[command->max_args], command->name, command->usage ? " " : "",
                       command->usage ? command->usage : "");
    fk_device device;
    if (cli->common.device && !*cli->common.device) return fk_fail(FK_ERROR_INVALID, "--device '' is none of cpu, cuda, cuda:N");
    if (command->names_device && command->names_device(values)) return fk_device_parse(cli->common.device, &device);
    return cli->common.device ? fkp_cli_device(cli, &device) : FK_OK;
}

static int run_prepared(fkp_cli *cli, const void *values)
{
    char cache[FKP_PATH_SIZE];
    fk_status status = fk_cache_dir(cli->common.cache, cache, sizeof cache);
    cli->common.cache = cache;
    if (status == FK_OK) status = check_args(cli, values);
    if (status == FK_OK) status = fkp_output_open(cli);
    int code = status == FK_OK ? cli->command->run(cli, values) : fkp_exit(cli, status);
    status = fkp_output_close(cli);
    return code == FKP_EXIT_OK ? fkp_exit(cli, status) : code;
}

static int run_command(const fkp_command *command, int argc, char **argv)
{
    fkp_cli cli = {.command = command, .common = {.seed = -1}};
    void *values = calloc(1, command->options_size + 1);
    const char **args = calloc((size_t)argc + 1, sizeof *args);
    cli.line = join_words(argc, argv);
    if (!values || !args || !cli.line) return fkp_exit(&cli, fk_fail(FK_ERROR_MEMORY, "out of memory"));
    fkp_option_set sets[] = {{command->options, values}, {fkp_common_option_table, &cli.common}};
    cli.args = args;
    int code = FKP_EXIT_OK;
    fk_status status = fkp_options_parse(command->name, argc - 2, argv + 2, sets, 2, args, &cli.num_args);
    if (status != FK_OK || cli.common.help) {
        if (status == FK_OK) fkp_help_command(command);
        if (status == FK_OK) status = fkp_output_close(&cli);
        code = fkp_exit(&cli, status);
    } else if (!command->runs_candidates || !command->runs_candidates(values) || !fkp_supervise(&cli, &code)) {
        code = run_prepared(&cli, values);
        fkp_supervised_end(code);
    }
    free(cli.line);
    free(args);
    fkp_options_free(sets, 2);
    free(values);
    return code;
}

static const fkp_command *find_command(const char *name)
{
    for (const fkp_command *const *c = fkp_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

static int unknown_command(const char *word)
{
    fkp_nearest nearest = {.word = word};
    for (const fkp_command *const *c = fkp_commands; *c; c++)
        if (!(*c)->raw_main) fkp_nearest_offer(&nearest, (*c)->name);
    return fkp_exit(&(fkp_cli){0}, fkp_fail_unknown("command", &nearest, "'fastkernels --help' lists them"));
}

/* Files that we open must not land on a standard descriptor that the caller closed. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) _exit(FKP_EXIT_MISSING);
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    const char *word = argc > 1 ? argv[1] : NULL;
    const fkp_command *command = word ? find_command(word) : NULL;
    if (command && command->raw_main) return command->raw_main(argc, argv);
    fkp_interrupt_install();
    if (command) return run_command(command, argc, argv);
    bool help = word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0);
    if (word && strcmp(word, "--version") == 0) {
        printf("fastkernels %s (%s)\n", fkp_version, fkp_commit);
    } else if (help && argc > 2) {
        command = find_command(argv[2]);
        if (!command || command->raw_main) return unknown_command(argv[2]);
        fkp_help_command(command);
    } else if (help) {
        fkp_help_all();
    } else if (word) {
        return unknown_command(word);
    } else {
        fprintf(stderr, "usage: fastkernels COMMAND [options]; 'fastkernels --help' lists the commands\n");
        return FKP_EXIT_USAGE;
    }
    return fkp_exit(&(fkp_cli){0}, fkp_output_close(&(fkp_cli){0}));
}
