/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator has the interface of the production operator it mirrors. The comparison is proved on mutated copies: each
 * change of a name, type, default, mutation mark, place or omission, on either side, must be found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mirrors.h"

#define MAX_FIELDS 64

static const char folder[] = FK_SOURCE_DIR "/mirrors";

static const mirror_narrowing narrowings[] = {
    {"flash_attn_prefill", "seqused_k", "the cache is always paged: lengths are needed"},
    {"flash_attn_prefill", "block_table", "the cache is always paged"},
    {"flash_attn_prefill", "window_size", "the left window alone; the right one is `causal`"},
    {"flash_attn_decode", "seqused_k", "the cache is always paged: lengths are needed"},
    {"flash_attn_decode", "block_table", "the cache is always paged"},
    {"flash_attn_decode", "window_size", "the left window alone: there are no later keys"},
    {"flash_attn_varlen", "cu_seqlens_k", "keys are always packed: their starts are needed"},
    {"flash_attn_varlen", "window_size", "the left window alone; the right one is `causal`"},
    {"fp8_linear", "weight_scale", "weights in fp8 always have scales here"},
    {"sample", "seed", "there is no generator to take it from"},
    {"sample", "offset", "there is no generator to take it from"},
    {"llama_decoder", "residual", "None in the first layer, which is_first_layer says"},
    {NULL, NULL, NULL}};

static void load(const fk_op *op, mirror_table *table)
{
    char why[512];
    if (!mirror_load(folder, op, table, why, sizeof why)) fail_msg("%s", why);
}

/* Operators without a production operator to compare with, and why. One that forgets FK_MIRRORS is not among them. */
static const struct {
    const char *op, *why;
} unmirrored[] = {
    {"l2_norm", "no library has a function of this signature"},
    {"encoder_attention", "fields as the original's class; no table of transformers' classes"},
    {"encoder_intermediate", "fields as the original's class; no table of transformers' classes"},
    {"encoder_output", "fields as the original's class; no table of transformers' classes"},
    {"bert_embeddings", "fields as the original's class; no table of transformers' classes"},
    {"bert_encoder", "fields as the original's class; no table of transformers' classes"},
    {"bert_layer", "fields as the original's class; no table of transformers' classes"},
    {"bert_model", "fields as the original's class; no table of transformers' classes"},
    {"xlm_roberta_embeddings", "fields as the original's class; no table of transformers' classes"},
    {"colbertv2_max_sim", "fields as the original's class; ColBERT's own code has a function of padded scores"},
    {"colbertv2_token_mask", "fields as the original's class; ColBERT's own code builds the mask in Python"},
    {"mean_pool", "no library has a function of this signature"},
    {"apply_penalties", "arguments as those of vllm.model_executor.layers.utils:apply_penalties, which no table has"},
};

static bool is_mirrored(const fk_op *op)
{
    bool excused = false;
    for (size_t i = 0; i < sizeof unmirrored / sizeof *unmirrored; i++) excused = excused || strcmp(unmirrored[i].op, op->name) == 0;
    if (!op->mirrors_library == !excused)
        fail_msg("%s %s: see `unmirrored` in this file", op->name, excused ? "has FK_MIRRORS and needs no excuse" : "lacks FK_MIRRORS");
    return !excused;
}

static void test_every_operator_matches(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < fk_op_count(); i++) {
        const fk_op *op = fk_op_at(i);
        mirror_table table;
        char why[512];
        if (!is_mirrored(op)) continue;
        load(op, &table);
        if (!mirror_matches(op, &table, narrowings, why, sizeof why)) {
            print_error("%s\n", why);
            bad++;
        }
        mirror_free(&table);
    }
    assert_int_equal(bad, 0);
}

/* An entry that is not needed would hide a later change. */
static void test_narrowings_are_needed(void **state)
{
    (void)state;
    for (int skip = 0; narrowings[skip].op; skip++) {
        mirror_narrowing others[sizeof narrowings / sizeof narrowings[0]];
        int n = 0;
        for (int i = 0; narrowings[i].op; i++)
            if (i != skip) others[n++] = narrowings[i];
        others[n] = (mirror_narrowing){0};
        const fk_op *op = fk_op_find(narrowings[skip].op);
        assert_non_null(op);
        mirror_table table;
        char why[512];
        load(op, &table);
        if (mirror_matches(op, &table, others, why, sizeof why))
            fail_msg("the narrowing of %s of %s is not needed", narrowings[skip].argument, op->name);
        mirror_free(&table);
    }
}

static int mutations;

static void must_differ(const fk_op *op, const mirror_table *table, const char *what, const char *name)
{
    char why[512];
    mutations++;
    if (mirror_matches(op, table, narrowings, why, sizeof why)) fail_msg("%s: %s of %s went unnoticed", op->name, what, name);
}

static bool is_narrowed(const fk_op *op, const char *name)
{
    for (const mirror_narrowing *n = narrowings; n->op; n++)
        if (strcmp(n->op, op->name) == 0 && strcmp(n->argument, name) == 0) return true;
    return false;
}

/* Changes of one field of the declaration. */
static void mutate_field(const fk_op *op, const mirror_table *table, fk_field *fields, int i)
{
    fk_op copy = *op;
    copy.fields = fields;
    fk_field before = fields[i], *f = &fields[i];
    const mirror_row *row = mirror_find(op, table, f);
    if (!mirror_concerns(f) || !row) return;
    bool out = f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX, schema = strstr(row->symbol, "::");

    f->name = "renamed";
    must_differ(&copy, table, "another name", before.name);
    *f = before;
    if (schema && fk_field_is_tensor(f)) {
        f->kind = f->kind == FK_FIELD_IN ? FK_FIELD_INOUT : FK_FIELD_IN;
        must_differ(&copy, table, "another mutation mark", f->name);
        *f = before;
    }
    if (is_narrowed(op, f->name)) return;
    bool tells_type = strcmp(row->type, "-") != 0 || (strcmp(row->default_text, "-") != 0 && strcmp(row->default_text, "None") != 0);
    if (!fk_field_is_tensor(f) && tells_type) {
        f->attr_type = f->attr_type == FK_ATTR_int ? FK_ATTR_float : FK_ATTR_int;
        must_differ(&copy, table, "another type", f->name);
        *f = before;
    }
    if (fk_field_is_tensor(f) && strcmp(row->type, "-") != 0) {
        f->kind = FK_FIELD_ATTR;
        f->attr_type = FK_ATTR_int;
        f->default_text = "FK_REQUIRED";
        if (!strstr(row->type, "int")) must_differ(&copy, table, "a scalar instead", f->name);
        *f = before;
    }
    if (!fk_field_is_tensor(f)) {
        f->default_text = strcmp(f->default_text, "FK_REQUIRED") == 0 ? "1" : "FK_REQUIRED";
        must_differ(&copy, table, "another default", f->name);
        *f = before;
    } else if (!out) {
        f->optional = !f->optional;
        must_differ(&copy, table, "another optionality", f->name);
        *f = before;
    }
}

static void mutate_order(const fk_op *op, const mirror_table *table, fk_field *fields)
{
    fk_op copy = *op;
    copy.fields = fields;
    int last = -1;
    for (int i = 0; i < op->num_fields; i++) {
        if (!mirror_concerns(&fields[i]) || !mirror_find(op, table, &fields[i])) continue;
        if (last >= 0 && (fields[last].kind == FK_FIELD_INIT) == (fields[i].kind == FK_FIELD_INIT)) {
            fk_field swap = fields[last];
            fields[last] = fields[i];
            fields[i] = swap;
            must_differ(&copy, table, "another place", fields[i].name);
            fields[i] = fields[last];
            fields[last] = swap;
        }
        last = i;
    }
}

static void mutate_omissions(const fk_op *op, const mirror_table *table)
{
    fk_omission omissions[MAX_FIELDS];
    int n = 0;
    while (op->omissions[n].name) {
        omissions[n] = op->omissions[n];
        n++;
    }
    fk_op copy = *op;
    copy.omissions = omissions;
    omissions[n] = (fk_omission){"no_such_argument", "none"};
    omissions[n + 1] = (fk_omission){0};
    must_differ(&copy, table, "an omission", "no_such_argument");
    omissions[n] = (fk_omission){0};
    for (int i = 0; i < n; i++) {
        fk_omission swap = omissions[i];
        omissions[i] = omissions[n - 1];
        omissions[n - 1] = (fk_omission){0};
        must_differ(&copy, table, "a missing omission", swap.name);
        omissions[n - 1] = omissions[i];
        omissions[i] = swap;
    }
}

/* Changes of one argument of the production signature. */
static void mutate_row(const fk_op *op, mirror_table *table, int i)
{
    mirror_row before = table->rows[i], *row = &table->rows[i];
    if (row->is_return) return;
    snprintf(row->name, sizeof row->name, "renamed");
    must_differ(op, table, "another production name", before.name);
    *row = before;
    const fk_field *field = NULL;
    for (int k = 0; k < op->num_fields; k++)
        if (mirror_concerns(&op->fields[k]) && mirror_find(op, table, &op->fields[k]) == row) field = &op->fields[k];
    if (!field) return;
    bool tensor = fk_field_is_tensor(field);
    if (strstr(row->symbol, "::") || !tensor || !fk_field_is_written(field)) {
        snprintf(row->mutated, sizeof row->mutated, "%s", strcmp(row->mutated, "!") == 0 ? "-" : "!");
        must_differ(op, table, "another production mutation mark", row->name);
        *row = before;
    }
    if (is_narrowed(op, field->name)) return;
    snprintf(row->type, sizeof row->type, "%s", tensor ? "int" : field->attr_type == FK_ATTR_int ? "float" : "int");
    must_differ(op, table, "another production type", row->name);
    *row = before;
    snprintf(row->default_text, sizeof row->default_text, "17");
    must_differ(op, table, "another production default", row->name);
    *row = before;
}

static void test_every_mutation_is_noticed(void **state)
{
    (void)state;
    for (int i = 0; i < fk_op_count(); i++) {
        const fk_op *op = fk_op_at(i);
        mirror_table table;
        if (!is_mirrored(op)) continue;
        load(op, &table);
        fk_field fields[MAX_FIELDS];
        assert_true(op->num_fields <= MAX_FIELDS);
        memcpy(fields, op->fields, (size_t)op->num_fields * sizeof *fields);
        for (int k = 0; k < op->num_fields; k++) mutate_field(op, &table, fields, k);
        mutate_order(op, &table, fields);
        mutate_omissions(op, &table);
        for (int k = 0; k < table.count; k++) mutate_row(op, &table, k);
        mirror_row *rows = realloc(table.rows, (size_t)(table.count + 1) * sizeof *rows);
        assert_non_null(rows);
        table.rows = rows;
        rows[table.count] = rows[0];
        snprintf(rows[table.count++].name, sizeof rows->name, "new_argument");
        must_differ(op, &table, "a new production argument", "new_argument");
        mirror_free(&table);
    }
    print_message("%d mutations noticed\n", mutations);
    assert_true(mutations > 20 * fk_op_count());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operator_matches),
        cmocka_unit_test(test_narrowings_are_needed),
        cmocka_unit_test(test_every_mutation_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
