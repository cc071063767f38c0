/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of command lines against option tables. */
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"

static void *target(const fkp_option_set *set, const fkp_option *option)
{
    return (char *)set->values + option->offset;
}

static bool in_range(const fkp_option *option, double value)
{
    return (option->min == 0 && option->max == 0) || (value >= option->min && value <= option->max);
}

static fk_status fail_number(const fkp_option *option, const char *text, const char *kind)
{
    if (option->min == 0 && option->max == 0)
        return fk_fail(FK_ERROR_INVALID, "--%s: '%s' is not %s", option->name, text, kind);
    if (option->type == FKP_OPT_INT) /* %g would write a billion as 1e+09 */
        return fk_fail(FK_ERROR_INVALID, "--%s: '%s' is not %s from %.0f to %.0f", option->name, text, kind, option->min, option->max);
    return fk_fail(FK_ERROR_INVALID, "--%s: '%s' is not %s from %g to %g", option->name, text, kind, option->min, option->max);
}

static fk_status store(const fkp_option_set *set, const fkp_option *option, const char *text)
{
    void *at = target(set, option);
    char *end;
    errno = 0;
    switch (option->type) {
    case FKP_OPT_FLAG:
        *(bool *)at = true;
        return FK_OK;
    case FKP_OPT_STRING:
    case FKP_OPT_OPTIONAL:
        *(const char **)at = text;
        return FK_OK;
    case FKP_OPT_INT:
    case FKP_OPT_GIVEN_INT: {
        long long value = strtoll(text, &end, 10);
        if (end == text || *end || errno || !in_range(option, (double)value))
            return fail_number(option, text, "a whole number");
        if (option->type == FKP_OPT_INT) *(int64_t *)at = value;
        else *(fkp_given_int *)at = (fkp_given_int){true, value};
        return FK_OK;
    }
    case FKP_OPT_REAL:
    case FKP_OPT_GIVEN_REAL: {
        double value = strtod(text, &end);
        if (end == text || *end || !isfinite(value) || !in_range(option, value))
            return fail_number(option, text, "a number");
        if (option->type == FKP_OPT_REAL) *(double *)at = value;
        else *(fkp_given_real *)at = (fkp_given_real){true, value};
        return FK_OK;
    }
    case FKP_OPT_LIST: {
        fkp_list *list = at;
        const char **items = realloc(list->items, (size_t)(list->count + 1) * sizeof *items);
        if (!items) return fk_fail(FK_ERROR_MEMORY, "out of memory for --%s", option->name);
        items[list->count++] = text;
        list->items = items;
        return FK_OK;
    }
    }
    return fk_fail(FK_ERROR_INTERNAL, "option --%s has unknown type %d", option->name, option->type);
}

/* The option called `name` (`length` bytes of it) or by the letter; and the set it is in. */
static const fkp_option *find(const fkp_option_set *sets, int num_sets, const char *name, size_t length, char letter,
                              const fkp_option_set **set)
{
    for (int s = 0; s < num_sets; s++)
        for (const fkp_option *o = sets[s].options; o && o->name; o++) {
            bool match = letter ? o->letter == letter : strncmp(o->name, name, length) == 0 && !o->name[length];
            if (!match) continue;
            *set = &sets[s];
            return o;
        }
    return NULL;
}

static fk_status fail_unknown_option(const char *owner, const char *word, size_t length, const fkp_option_set *sets,
                                     int num_sets)
{
    char name[80];
    length = length < sizeof name ? length : sizeof name - 1;
    memcpy(name, word, length);
    name[length] = 0;
    fkp_nearest nearest = {.word = name};
    for (int s = 0; s < num_sets; s++)
        for (const fkp_option *o = sets[s].options; o && o->name; o++) fkp_nearest_offer(&nearest, o->name);
    if (nearest.best)
        return fk_fail(FK_ERROR_INVALID, "%s has no option '--%s'; did you mean '--%s'?", owner, name, nearest.best);
    return fk_fail(FK_ERROR_INVALID, "%s has no option '--%s'; 'fastkernels %s --help' lists them", owner, name, owner);
}

fk_status fkp_options_parse(const char *owner, int argc, char **argv, const fkp_option_set *sets, int num_sets,
                            const char **args, int *num_args)
{
    *num_args = 0;
    for (int s = 0; s < num_sets; s++)
        for (const fkp_option *o = sets[s].options; o && o->name; o++)
            if (o->initial) FK_TRY(store(&sets[s], o, o->initial));
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        if (strcmp(word, "--") == 0) {
            while (++i < argc) args[(*num_args)++] = argv[i];
            break;
        }
        if (word[0] != '-' || !word[1]) {
            args[(*num_args)++] = word;
            continue;
        }
        const fkp_option_set *set = NULL;
        const fkp_option *option;
        if (word[1] == '-') {
            size_t length = strcspn(word + 2, "=");
            option = find(sets, num_sets, word + 2, length, 0, &set);
            if (!option) return fail_unknown_option(owner, word + 2, length, sets, num_sets);
            if (word[2 + length] == '=') value = word + 3 + length;
        } else {
            option = find(sets, num_sets, NULL, 0, word[1], &set);
            if (!option)
                return fk_fail(FK_ERROR_INVALID, "%s has no option '-%c'; 'fastkernels %s --help' lists them", owner,
                               word[1], owner);
            if (word[2]) value = word + 2;
        }
        if (option->type == FKP_OPT_FLAG && value)
            return fk_fail(FK_ERROR_INVALID, "--%s takes no value, but got '%s'", option->name, value);
        if (option->type == FKP_OPT_OPTIONAL && !value) value = "";
        if (option->type != FKP_OPT_FLAG && !value) {
            if (i + 1 >= argc || strncmp(argv[i + 1], "--", 2) == 0)
                return fk_fail(FK_ERROR_INVALID, "--%s needs a value: --%s=%s", option->name, option->name, option->value);
            value = argv[++i];
        }
        FK_TRY(store(set, option, value));
    }
    return FK_OK;
}

void fkp_options_free(const fkp_option_set *sets, int num_sets)
{
    for (int s = 0; s < num_sets; s++)
        for (const fkp_option *o = sets[s].options; o && o->name; o++)
            if (o->type == FKP_OPT_LIST) free(((fkp_list *)target(&sets[s], o))->items);
}

fk_status fkp_parse_levels(const char *text, unsigned *mask)
{
    if (!text) {
        *mask = 0x1e; /* L1 to L4 */
        return FK_OK;
    }
    *mask = 0;
    for (const char *p = text;; p++) {
        if (*p == 'L' || *p == 'l') p++;
        if (*p < '1' || *p > '4' || (p[1] && p[1] != ','))
            return fk_fail(FK_ERROR_INVALID, "--level: '%s' is not a level L1 to L4, or several with commas", text);
        *mask |= 1u << (*p - '0');
        if (!*++p) return FK_OK;
    }
}

fk_status fkp_split_commas(const char *text, fkp_list *list)
{
    size_t length = strlen(text), count = 1;
    for (const char *p = text; *p; p++) count += *p == ',';
    *list = (fkp_list){0};
    const char **items = malloc(count * sizeof *items + length + 1);
    if (!items) return fk_fail(FK_ERROR_MEMORY, "out of memory for a list of %zu names", count);
    char *copy = (char *)(items + count);
    memcpy(copy, text, length + 1);
    for (char *item = copy; item;) {
        char *comma = strchr(item, ',');
        if (comma) *comma = 0;
        if (!*item) {
            free(items);
            return fk_fail(FK_ERROR_INVALID, "'%s' has an empty name between commas", text);
        }
        items[list->count++] = item;
        item = comma ? comma + 1 : NULL;
    }
    list->items = items;
    return FK_OK;
}
