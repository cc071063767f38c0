/* SPDX-License-Identifier: Apache-2.0 */
/* What a subcommand is: one struct in one file, named in cli/commands.def. The frame parses its options into a struct of
 * its own, opens the outputs, and hands everything over as an fkp_cli. */
#ifndef FK_CLI_COMMAND_H
#define FK_CLI_COMMAND_H

#include <fk/status.h>
#include <fk/tensor.h>

#include <stdio.h>

#include "cli/options.h"

/* Exit codes of every command; scripts rely on them. */
enum {
    FKP_EXIT_OK = 0,
    FKP_EXIT_JUDGED = 1,   /* a judgement failed: a wrong candidate, tokens that differ, validation off */
    FKP_EXIT_USAGE = 2,    /* bad usage or bad input */
    FKP_EXIT_MISSING = 3,  /* something needed is not there */
    FKP_EXIT_INTERNAL = 4, /* a bug of ours */
    FKP_EXIT_INTERRUPTED = 130
};

typedef struct fkp_common_options {
    const char *device;     /* as given; NULL: the default device */
    const char *json;       /* NULL: no JSON; "": to stdout; else the file */
    const char *cache;      /* folder; never NULL after parsing */
    int64_t seed;           /* -1: not given */
    int64_t threads;        /* 0: all that the process may use */
    bool quiet, verbose, no_color, help;
} fkp_common_options;

typedef struct fkp_command fkp_command;

/* One invocation. */
typedef struct fkp_cli {
    const fkp_command *command;
    const char *const *args; /* positional arguments */
    int num_args;
    fkp_common_options common;
    char *line;              /* the whole command line, quoted for a shell */
    FILE *json;              /* where JSON lines go; NULL without --json */
    bool color;              /* of stdout */
    int lines_written;
    bool pipe_closed;        /* whoever read stdout went away: nothing more is printed, work goes on */
    struct json_t *header;   /* fields that every result carries; made on first use */
} fkp_cli;

struct fkp_command {
    const char *name;
    const char *summary;     /* one line, no full stop */
    const char *usage;       /* positional arguments: "[OP...]"; NULL when there are none */
    const fkp_option *options; /* ends with a NULL name */
    size_t options_size;     /* of the struct that the options' offsets refer to */
    const char *details;     /* more for --help; NULL when the summary says it all */
    const char *examples[3]; /* two real command lines; shown as they stand */
    int max_args;            /* most positional arguments; -1: any number */
    /* Whether candidates would run in the command's process: it gets a child for that. NULL: never. */
    bool (*runs_candidates)(const void *options);
    /* Whether it only needs the device's name, not the device; NULL: never. */
    bool (*names_device)(const void *options);
    /* Returns an exit code; `options` points to the filled options struct. */
    int (*run)(fkp_cli *cli, const void *options);
    /* For hidden first words (cli/hidden.c): the whole argv, no parsing, no outputs. Instead of `run`. */
    int (*raw_main)(int argc, char **argv);
};

/* The table; ends with NULL. */
extern const fkp_command *const fkp_commands[];
extern const fkp_option fkp_common_option_table[];

/* Says what failed ("fastkernels bench: ...") and returns the exit code of `status`, 0 for FK_OK. */
int fkp_exit(const fkp_cli *cli, fk_status status);
int fkp_exit_code(fk_status status);

/* --device, or the default device; opens its backend, so that a missing one is known at once. */
fk_status fkp_cli_device(const fkp_cli *cli, fk_device *device);

/* Help texts, to stdout. */
void fkp_help_all(void);
void fkp_help_command(const fkp_command *command);

#endif
