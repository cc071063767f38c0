/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts, all from the tables. */
#include <string.h>

#include "cli/command.h"

#define COLUMN 26
#define WIDTH 100

/* Prints `text` from column COLUMN on, wrapped at spaces. */
static void print_wrapped(const char *text, const char *initial)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s%s%s", text, initial ? " (default " : "", initial ? initial : "", initial ? ")" : "");
    size_t room = WIDTH - COLUMN;
    for (const char *p = whole; *p;) {
        size_t n = strlen(p);
        if (n > room) {
            n = room;
            while (n > 0 && p[n] != ' ') n--;
            if (n == 0) n = room;
        }
        printf("%.*s\n", (int)n, p);
        p += n;
        while (*p == ' ') p++;
        if (*p) printf("%*s", COLUMN, "");
    }
}

static void print_options(const fkp_option *options)
{
    for (const fkp_option *o = options; o && o->name; o++) {
        char head[128], letter[8] = "";
        if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
        if (o->type == FKP_OPT_FLAG) snprintf(head, sizeof head, "%s--%s", letter, o->name);
        else if (o->type == FKP_OPT_OPTIONAL) snprintf(head, sizeof head, "%s--%s[=%s]", letter, o->name, o->value);
        else snprintf(head, sizeof head, "%s--%s %s", letter, o->name, o->value);
        if (strlen(head) + 3 < COLUMN) printf("  %-*s", COLUMN - 2, head);
        else printf("  %s\n%*s", head, COLUMN, "");
        print_wrapped(o->help, o->initial);
    }
}

void fkp_help_command(const fkp_command *command)
{
    printf("fastkernels %s: %s\n\nusage: fastkernels %s%s%s [options]\n", command->name, command->summary, command->name,
           command->usage ? " " : "", command->usage ? command->usage : "");
    if (command->details) printf("\n%s\n", command->details);
    if (command->options && command->options->name) {
        printf("\noptions:\n");
        print_options(command->options);
    }
    printf("\ncommon options:\n");
    print_options(fkp_common_option_table);
    printf("\nexamples:\n");
    for (int i = 0; i < 3 && command->examples[i]; i++) printf("  %s\n", command->examples[i]);
}

void fkp_help_all(void)
{
    printf("fastkernels: a GPU-kernel benchmark that is an inference framework\n\n"
           "usage: fastkernels COMMAND [options]\n       fastkernels COMMAND --help\n\ncommands:\n");
    for (const fkp_command *const *c = fkp_commands; *c; c++)
        if (!(*c)->raw_main) printf("  %-14s %s\n", (*c)->name, (*c)->summary);
    printf("\ncommon options:\n");
    print_options(fkp_common_option_table);
    printf("\nexit codes:\n"
           "  0    all right\n"
           "  1    a judgement failed: a wrong or failing candidate, tokens that differ, validation off\n"
           "  2    bad usage or bad input\n"
           "  3    something needed is missing: device, compiler, model, library, network\n"
           "  4    internal error: a bug, please report it\n"
           "  130  interrupted; finished work is on disk\n\n"
           "examples:\n"
           "  fastkernels list operators --level L1\n"
           "  fastkernels doctor --measure\n");
}
