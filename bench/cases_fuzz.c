/* SPDX-License-Identifier: Apache-2.0 */
/* Cases around the declared ones: other sizes, of which the operator accepts what it can compute. */
#include "bench/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/judge.h"
#include "core/random.h"

/* A declared case with its dims changed: every "NAME=number" that is no field gets a size around the old one. Names that
 * a declared case ties to one another by equal values (T=7 M=7) stay equal. */
static void vary(const char *text, const fk_op *op, fk_random *random, char *buf, size_t size)
{
    int64_t from[16], to[16];
    int known = 0;
    size_t used = 0;
    buf[0] = 0;
    for (const char *at = text; *at && used < size;) {
        size_t length = strcspn(at, " "), name_length = strcspn(at, "=");
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)name_length, at);
        char *end;
        long long value = strtoll(at + name_length + 1, &end, 10);
        if (fk_op_field(op, name) < 0 && end == at + length && value > 0) {
            int64_t varied = -1;
            for (int i = 0; i < known; i++)
                if (from[i] == value) varied = to[i];
            if (varied < 0) {
                varied = 1 + fkp_random_below(random, 2 * value);
                if (known < 16) from[known] = value, to[known++] = varied;
            }
            used += (size_t)snprintf(buf + used, size - used, "%s%s=%lld", used ? " " : "", name, (long long)varied);
        } else {
            used += (size_t)snprintf(buf + used, size - used, "%s%.*s", used ? " " : "", (int)length, at);
        }
        at += length + strspn(at + length, " ");
    }
}

/* A case planned twice would be judged twice under one key. */
static bool is_planned(const fkp_case_list *list, const fkp_case *c)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].op == c->op && strcmp(list->items[i].text, c->text) == 0) return true;
    return false;
}

fk_status fkp_cases_fuzz(fkp_case_list *list, const fk_op *op, fk_dtype dtype, int count, uint64_t seed,
                         struct fkp_judge *judge)
{
    fk_random random = {seed};
    int declared = 0;
    while (op->cases && op->cases[declared]) declared++;
    for (int made = 0, tries = 0; made < count && declared && tries < 20 * count; tries++) {
        char text[512];
        vary(op->cases[fkp_random_below(&random, declared)], op, &random, text, sizeof text);
        fkp_case c;
        fk_status status = fkp_case_parse(&c, op, text, dtype);
        if (status == FK_OK && !is_planned(list, &c) && fkp_judge_accepts(judge, &c)) {
            status = fkp_case_set_source(&c, "fuzz");
            if (status == FK_OK) status = fkp_case_list_add(list, &c);
            made++;
        }
        fkp_case_deinit(&c);
        if (status == FK_ERROR_MEMORY) return status;
    }
    return FK_OK;
}
