/* SPDX-License-Identifier: Apache-2.0 */
/* Options are declared in tables and parsed into structs: `--x=y` and `--x y`, a few short ones, `--` ends them. Mistakes
 * name the option, the value, and the nearest option that exists. */
#ifndef FK_CLI_OPTIONS_H
#define FK_CLI_OPTIONS_H

#include <fk/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fkp_option_type {
    FKP_OPT_FLAG,     /* bool */
    FKP_OPT_STRING,   /* const char *, borrowed from argv; NULL when not given */
    FKP_OPT_OPTIONAL, /* const char *: NULL when not given, "" for --x, the value of --x=value */
    FKP_OPT_INT,      /* int64_t */
    FKP_OPT_REAL,     /* double */
    FKP_OPT_GIVEN_INT,  /* fkp_given_int: knows whether it was given */
    FKP_OPT_GIVEN_REAL, /* fkp_given_real */
    FKP_OPT_LIST      /* fkp_list: may be given many times */
} fkp_option_type;

typedef struct fkp_list {
    const char **items;
    int count;
} fkp_list;

/* Numbers whose absence means something. */
typedef struct fkp_given_int {
    bool given;
    int64_t value;
} fkp_given_int;

typedef struct fkp_given_real {
    bool given;
    double value;
} fkp_given_real;

typedef struct fkp_option {
    const char *name; /* without the dashes */
    fkp_option_type type;
    size_t offset;      /* into the struct of the table */
    const char *value;  /* what the value is: "N", "DIR"; NULL for flags */
    const char *help;
    const char *initial; /* value when not given, as one would type it; NULL: zero */
    double min, max;     /* of numbers; both 0: any */
    char letter;         /* short form; 0: none */
} fkp_option;

/* A table, and the struct it fills. */
typedef struct fkp_option_set {
    const fkp_option *options; /* ends with a NULL name; may be NULL */
    void *values;
} fkp_option_set;

/* Parses argv[0..argc) into the sets; what is no option lands in args (room for argc). `owner` names the command in
 * messages. Values are borrowed from argv; fkp_options_free gives lists back. */
fk_status fkp_options_parse(const char *owner, int argc, char **argv, const fkp_option_set *sets, int num_sets,
                            const char **args, int *num_args);
void fkp_options_free(const fkp_option_set *sets, int num_sets);

/* "L2", "L1,L3", "1" into a mask of 1 << level; NULL or "" is every level. */
fk_status fkp_parse_levels(const char *text, unsigned *mask);
/* Splits "a,b" at commas into malloc'ed items (one block: free(list->items)); empty items are an error. */
fk_status fkp_split_commas(const char *text, fkp_list *list);

#endif
